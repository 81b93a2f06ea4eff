/** Which actions a workflow names, and where. What a name means is known at the edge only. */
import type { Spec, Step } from '../spec.ts'
import { below } from './path.ts'

/** A place of a workflow that names an action. */
interface NamedAction {
  readonly field: string
  readonly name: string
}
function within(steps: readonly (Step | NonNullable<Spec['cleanup']>[number])[], path: string): NamedAction[] {
  return steps.flatMap(({ kind, config }, index): NamedAction[] => {
    const at = below(below(path, index), 'config')
    if (kind === 'action') return [{ field: below(at, 'action_name'), name: config.action_name }]
    if (kind === 'for_each') return within(config.steps, below(at, 'steps'))
    return kind === 'parallel' ? config.branches.flatMap((branch, i) => within(branch.steps, below(below(below(at, 'branches'), i), 'steps'))) : []
  })
}
/** The actions that steps and cleanup name, with the exact places. @param path of the document that has them. */
export const actionPlaces = ({ steps = [], cleanup = [] }: Partial<Pick<Spec, 'steps' | 'cleanup'>>, path = ''): NamedAction[] => [...within(steps, below(path, 'steps')), ...within(cleanup, below(path, 'cleanup'))]
