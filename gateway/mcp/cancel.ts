/**
 * Cancellation of calls. A request id identifies a call only within the client's session. Therefore
 * the external id of a run is a hash of both: any gateway that receives the cancellation finds the
 * run by it, and gateways store nothing.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { RpcId } from '../../protocol/mcp/messages.ts'
import { authorize } from '../auth/authorize.ts'
import { type Call, type Edge, rows, scopeId } from '../call.ts'
import { runCommand } from '../command.ts'
import { sleep } from '../timing.ts'

/** Milliseconds before each lookup of a run, which another gateway may be starting at that time. */
const LOOKS = [0, 250, 1000]

/**
 * The external id of the run of a call; undefined when the client has no session, and so cannot
 * cancel calls.
 */
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

/**
 * Cancels the run of a call, if the caller may cancel runs. A call whose run has ended or does not
 * exist is ignored.
 */
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
    if (pause > 0) await sleep(world, pause)
    const found = await world.view(scopeId(edge, call), 'run.list', { external_id, limit: 10 })
    if (isRefusal(found)) return found
    for (const { id: run_id } of found.items) {
      const done = await runCommand(edge, {
        ...call,
        name: 'run.cancel',
        row,
        slots: { ...call.slots, id: run_id },
        query: {},
        body: { reason: reason?.slice(0, 1024) || 'cancelled by the client' },
      })
      if (isRefusal(done)) return done
    }
    if (found.items.length > 0) return undefined
  }
  return undefined
}
