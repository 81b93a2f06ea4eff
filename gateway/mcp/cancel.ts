/**
 * Taking a call back. A call is known by its request id only within the client's session, so a run carries both, hashed, as its
 * external id: whichever gateway hears of the cancellation finds it, and nothing is kept here.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Run } from '../../protocol/runs/schema.ts'
import type { RpcId } from '../../protocol/mcp/messages.ts'
import { authorize } from '../auth/authorize.ts'
import { scopeId, rows, type Call, type Edge } from '../call.ts'
import { runCommand } from '../command.ts'

/** Milliseconds between looks for a run whose start may be under way on another gateway. */
const LOOKS = [0, 250, 1000]

/** The external id of the run of a call; undefined when the client has no session, and so cannot take calls back. */
export function labelOf(
  { world }: Edge,
  { caller, incoming, project }: Call,
  id: RpcId,
): string | undefined {
  const session = incoming.header('mcp-session-id')
  return session === undefined
    ? undefined
    : `mcp:${world.hash(JSON.stringify([project?.id, caller.principal.id, session, id])).slice(0, 32)}`
}

/** Cancel the run of a call, as far as the caller may cancel runs. What has ended, or was never asked, is none. */
export async function cancelCall(
  edge: Edge,
  call: Call,
  id: RpcId,
  reason: string | undefined,
): Promise<Refusal | undefined> {
  const { world } = edge
  const row = rows['run.cancel']
  const external_id = labelOf(edge, call, id)
  if (
    !row ||
    external_id === undefined ||
    authorize(world.settings.brand, row.shape.permission, call.caller)
  )
    return undefined
  for (const pause of LOOKS) {
    if (pause > 0) await new Promise<void>((look) => world.later(pause, look))
    const found = (await world.view(scopeId(edge, call), 'run.list', { external_id, limit: 10 })) as
      | { items: readonly Run[] }
      | Refusal
    if (isRefusal(found)) return found
    for (const { id: run_id } of found.items) {
      const done = await runCommand(edge, {
        ...call,
        name: 'run.cancel',
        row,
        slots: { ...call.slots, id: run_id },
        query: {},
        body: { reason: reason?.slice(0, 1024) || 'taken back by the client' },
      })
      if (isRefusal(done)) return done
    }
    if (found.items.length > 0) return undefined
  }
  return undefined
}
