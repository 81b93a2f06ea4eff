/**
 * Finds the private channels that a caller may not see. For this caller they do not exist, so
 * exports, drift, bindings and plans must not describe them.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Caller } from '../auth/authenticate.ts'
import { viewerOf } from '../auth/viewer.ts'
import type { World } from '../ports.ts'
import { concurrently } from '../timing.ts'

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
