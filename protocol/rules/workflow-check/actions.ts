/**
 * The actions that a workflow refers to, with the paths of the references. Only the gateway can
 * check whether the actions exist.
 */
import { CLONE } from '../../loops/repositories.ts'
import type { Spec, Step } from '../../workflows/spec.ts'
import { below } from './path.ts'
import { placesIn } from './places.ts'

/** The parts of a workflow or a loop that refer to actions. */
export interface Naming extends Partial<Pick<Spec, 'steps' | 'cleanup'>> {
  readonly repositories?: readonly unknown[]
}
interface NamedAction {
  readonly field: string
  readonly name: string
}
const named = (steps: readonly Step[], path: string): NamedAction[] =>
  placesIn(steps, path, ({ kind, config }, at): NamedAction[] =>
    kind === 'action' ? [{ field: below(at(), 'action_name'), name: config.action_name }] : [],
  )
/**
 * Returns the actions that steps, cleanup and the preparation of repositories refer to, with their
 * exact paths.
 * @param path path of the object that contains `steps`.
 */
export const actionPlaces = (
  { steps = [], cleanup = [], repositories = [] }: Naming,
  path = '',
): NamedAction[] => [
  ...(repositories.length > 0 ? [{ field: below(path, 'repositories'), name: CLONE }] : []),
  ...named(steps, below(path, 'steps')),
  ...(cleanup.length > 0 ? named(cleanup, below(path, 'cleanup')) : []),
]
