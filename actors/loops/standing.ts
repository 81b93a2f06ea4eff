/**
 * The summary of a loop (protocol/loops/standing.ts), which its project stores to refuse the
 * deletion of actions in use.
 */
import type { LoopEvent } from '../../protocol/loops/events.ts'
import { specOf } from '../../protocol/loops/schema.ts'
import type { LoopStanding } from '../../protocol/loops/standing.ts'
import { actionsNamed } from '../../protocol/workflows/spec.ts'
import { isExisting, type LoopState } from './state.ts'

/**
 * Returns the names of the actions that runs of the loop can call, directly or in workflows that
 * the loop references. The list is empty while the loop is not active.
 */
function actionsOf(state: LoopState): readonly string[] {
  if (!isExisting(state) || state.record.status !== 'active') return []
  const specs = [specOf(state.record), ...Object.values(state.definitions).map(({ spec }) => spec)]
  return [...new Set(specs.flatMap(actionsNamed))].sort()
}

/**
 * Returns the event that reports the loop's new summary to its project, or an empty list if the
 * summary has not changed.
 * @param organization the id of the organization if the command contains it, otherwise empty.
 */
export function standingEvents(
  before: LoopState,
  after: LoopState,
  loop_id: string,
  organization: string,
): LoopEvent[] {
  const { standing } = before
  if (!isExisting(after) && !isExisting(before)) return []
  const actions = actionsOf(after)
  if (
    isExisting(after) &&
    standing.version > 0 &&
    JSON.stringify(actions) === JSON.stringify(standing.actions)
  )
    return []
  return [
    {
      type: 'loop.stands',
      loop_id,
      version: standing.version + 1,
      actions,
      organization: organization || standing.organization,
      ...(!isExisting(after) && { gone: true as const }),
    },
  ]
}

/** Returns the current summary, for the gateway that saved the loop. */
export const standingOf = (
  state: LoopState,
  { loop_id }: { readonly loop_id: string },
): LoopStanding => ({
  loop_id,
  version: state.standing.version,
  actions: state.standing.actions,
  ...(!isExisting(state) && { gone: true as const }),
})
