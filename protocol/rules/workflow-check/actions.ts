/**
 * The actions that a workflow refers to, with the paths of the references. Only the gateway can
 * check whether the actions exist.
 */
import type { Spec, Step } from '../../workflows/spec.ts'
import { below } from './path.ts'
import { placesIn } from './places.ts'

/** A field of a workflow that refers to an action. */
interface NamedAction {
  readonly field: string
  readonly name: string
}
const named = (steps: readonly Step[], path: string): NamedAction[] =>
  placesIn(steps, path, ({ kind, config }, at): NamedAction[] =>
    kind === 'action' ? [{ field: below(at, 'action_name'), name: config.action_name }] : [],
  )
/**
 * Returns the actions that steps and cleanup refer to, with their exact paths.
 * @param path path of the object that contains `steps` and `cleanup`.
 */
export const actionPlaces = (
  { steps = [], cleanup = [] }: Partial<Pick<Spec, 'steps' | 'cleanup'>>,
  path = '',
): NamedAction[] => [
  ...named(steps, below(path, 'steps')),
  ...named(cleanup, below(path, 'cleanup')),
]
