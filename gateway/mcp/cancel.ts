/**
 * Cancels calls. A request id identifies a call only within the client's MCP session. The external
 * id of a call's run therefore contains a hash of the session and the request id. A gateway that
 * receives a cancellation finds the run by this external id, so no gateway stores anything about
 * calls.
 */
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { RpcId } from '../../protocol/mcp/messages.ts'
import { authorize } from '../auth/authorize.ts'
import { type Call, type Edge, rows, scopeId } from '../call.ts'
import { runCommand } from '../command.ts'
import { sleep } from '../timing.ts'

/**
 * Delays in milliseconds before each lookup of a run. Another gateway may still be starting the
 * run, so a lookup that finds nothing is repeated.
 */
const LOOKS = [0, 250, 1000]

/**
 * Returns the external id of the run of a call. Returns undefined when the client has no session.
 * Such a client cannot cancel calls.
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
 * Cancels the run of a call. A cancellation is ignored when the caller may not cancel runs, or when
 * no run is found. Returns the refusal of the lookup or the cancellation, if any.
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
