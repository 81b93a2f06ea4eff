/**
 * What the actions that a definition names ask of it. Steps may not call what the service does for agents only. A caller who
 * saves a definition, or starts an inline one, must hold the permission to execute each action in it: else a definition would
 * be a way around that permission.
 */
import { builtinOf } from '../protocol/action/builtin.ts'
import { refuse, refuseFields, type Refusal } from '../protocol/errors.ts'
import { actionPlaces } from '../protocol/language/actions.ts'
import { brandedPermission } from '../protocol/access.ts'
import { publishedHandle } from '../protocol/naming.ts'
import { allows } from '../protocol/roles.ts'
import type { Spec } from '../protocol/spec.ts'
import type { Caller } from './authenticate.ts'
import type { Edge } from './call.ts'

/**
 * The refusal of a definition whose steps name what they, or their author, may not call; undefined: all is allowed. Actions
 * that a template names are not known yet.
 * @param path of the document that has the steps.
 */
export function refusedActions(
  edge: Pick<Edge, 'world'>,
  { permissions }: Pick<Caller, 'permissions'>,
  definition: Partial<Pick<Spec, 'steps' | 'cleanup'>>,
  path = '',
): Refusal | undefined {
  const impossible = impossibleSteps(edge, definition, path)
  if (impossible) return impossible
  const lacking = actionPlaces(definition, path).find(
    ({ name }) => !name.includes('${{') && !allows(permissions, `actions.execute.${name}`),
  )
  return (
    lacking &&
    refuse('permission_denied', {
      permission: brandedPermission(
        `actions.execute.${lacking.name}`,
        edge.world.settings.brand.toLowerCase(),
      ),
      fields: [{ field: lacking.field, message: 'names an action that you may not execute' }],
    })
  )
}

/** The refusal of steps that can never be done, each with its exact place. */
function impossibleSteps(
  { world }: Pick<Edge, 'world'>,
  definition: Partial<Pick<Spec, 'steps' | 'cleanup'>>,
  path: string,
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
