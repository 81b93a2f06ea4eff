/** Which actions a workflow names, and where. What a name means is known at the edge only. */
import type { Spec, Step } from '../../workflows/spec.ts'
import { below } from './path.ts'
import { placesIn } from './places.ts'

/** A place of a workflow that names an action. */
interface NamedAction {
  readonly field: string
  readonly name: string
}
const named = (steps: readonly Step[], path: string): NamedAction[] =>
  placesIn(steps, path, ({ kind, config }, at): NamedAction[] =>
    kind === 'action' ? [{ field: below(at, 'action_name'), name: config.action_name }] : [],
  )
/** The actions that steps and cleanup name, with the exact places. @param path of the document that has them. */
export const actionPlaces = (
  { steps = [], cleanup = [] }: Partial<Pick<Spec, 'steps' | 'cleanup'>>,
  path = '',
): NamedAction[] => [
  ...named(steps, below(path, 'steps')),
  ...named(cleanup, below(path, 'cleanup')),
]
