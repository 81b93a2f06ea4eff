/** Checks the changes of a plan to channels that the caller may not see. */
import type { Plan, PlannedChange } from '../../protocol/blueprints/plan.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { Caller } from '../auth/authenticate.ts'
import type { World } from '../ports.ts'
import { locateRefusal } from './execute.ts'
import { hiddenChannels } from './hidden-channels.ts'

/**
 * Checks the plan for channels that are bound to the blueprint and that the caller may not see.
 * Returns `not_found` if a field of one of them would change, as the change itself would be
 * refused. Otherwise returns the plan without the drift of these channels.
 */
export async function withoutHiddenDrift(
  world: Pick<World, 'view'>,
  project: string,
  caller: Caller,
  plan: Plan,
): Promise<Plan | Refusal> {
  const isDescribed = ({ resource_type, fields, drift }: PlannedChange): boolean =>
    resource_type === 'channel' && (fields.length > 0 || drift.length > 0)
  const ids = plan.changes.flatMap((change) =>
    isDescribed(change) && change.known ? [change.known.id] : [],
  )
  const hidden = await hiddenChannels(world, project, caller, ids)
  if (isRefusal(hidden)) return hidden
  const isHidden = ({ known }: PlannedChange): boolean =>
    known !== undefined && hidden.has(known.id)
  const changed = plan.changes.find((change) => isHidden(change) && change.fields.length > 0)
  if (changed) return locateRefusal(changed, refuse('not_found'))
  return {
    ...plan,
    changes: plan.changes.map((change) =>
      isHidden(change) ? { ...change, drift: [], omitted: [] } : change,
    ),
  }
}
