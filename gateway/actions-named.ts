/** Actions that a definition may not name: what the service does itself is done for agents only, so a step that calls it would wait for ever. */
import { builtinOf } from '../protocol/action/builtin.ts'
import { refuseFields, type Refusal } from '../protocol/errors.ts'
import { actionPlaces } from '../protocol/language/actions.ts'
import { publishedHandle } from '../protocol/naming.ts'
import type { Spec } from '../protocol/spec.ts'
import type { Edge } from './call.ts'

/** The refusal of steps that call what the service does itself, each with its exact place; undefined: none does. @param path of the document that has the steps. */
export function builtinSteps(
  { world }: Pick<Edge, 'world'>,
  definition: Partial<Pick<Spec, 'steps' | 'cleanup'>>,
  path = '',
): Refusal | undefined {
  const brand = world.settings.brand.toLowerCase()
  const { cleanup = [] } = definition
  const faults = [
    ...actionPlaces(definition, path)
      .filter(({ name }) => typeof builtinOf(brand, name) === 'string')
      .map(({ field, name }) => ({
        field,
        message: 'only agents call this; a step cannot',
        actual: name,
      })),
    ...actionPlaces({ cleanup }, path)
      .filter(({ name }) => publishedHandle(name) !== undefined)
      .map(({ field, name }) => ({
        field,
        message: 'a step of the cleanup cannot call a workflow',
        actual: name,
      })),
  ]
  return faults.length > 0 ? refuseFields(...faults.slice(0, 50)) : undefined
}
