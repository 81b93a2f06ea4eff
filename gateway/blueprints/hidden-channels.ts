/**
 * Finds the private channels that a caller may not see. For this caller they do not exist, so
 * exports, drift, bindings and plans must not describe them.
 */
import type { Plan, PlannedChange } from '../../protocol/blueprints/plan.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { Caller } from '../auth/authenticate.ts'
import { viewerOf } from '../auth/viewer.ts'
import type { World } from '../ports.ts'
import { concurrently } from '../timing.ts'
import { locateRefusal } from './execute.ts'

/** Maximum number of concurrent queries. */
const MAX_CONCURRENT = 32

/** Returns those of the given channels that the caller may not see. */
export async function hiddenChannels(
  world: Pick<World, 'view'>,
  project: string,
  caller: Caller,
  ids: readonly string[],
): Promise<ReadonlySet<string> | Refusal> {
  const viewer = viewerOf(caller)
  if (viewer.admin) return new Set()
  const answers = await concurrently(
    MAX_CONCURRENT,
    ids,
    async (id) => [id, await world.view(project, 'channel.get', { id, viewer })] as const,
  )
  const hidden = new Set<string>()
  for (const [id, answer] of answers) {
    if (!isRefusal(answer)) continue
    if (answer.refused !== 'not_found') return answer
    hidden.add(id)
  }
  return hidden
}

interface Described {
  readonly type: string
  readonly id: string
}
/** Returns the resources without the private channels that the caller may not see. */
export async function withoutHiddenChannels<T extends Described>(
  world: Pick<World, 'view'>,
  project: string,
  caller: Caller,
  resources: readonly T[],
): Promise<T[] | Refusal> {
  const ids = resources.flatMap(({ type, id }) => (type === 'channel' ? [id] : []))
  const hidden = await hiddenChannels(world, project, caller, ids)
  return isRefusal(hidden) ? hidden : resources.filter(({ id }) => !hidden.has(id))
}

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
