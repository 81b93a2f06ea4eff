/** Reads the action call for which a job was created. */
import type { World } from '../../gateway/ports.ts'
import type { ActionCall } from '../../protocol/actions/invocation.ts'
import type { Refusal } from '../../protocol/errors.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'

/**
 * Reads the action call of a job from the session whose turn makes the call, or otherwise from the
 * run. Returns null when the call is no longer needed, and a refusal when the owner cannot be
 * queried.
 */
export async function callOf(
  world: Pick<World, 'ask'>,
  project: string,
  { id: job_id, session_id, run_id }: ClaimedJob,
): Promise<ActionCall | null | Refusal> {
  const to =
    session_id !== undefined
      ? { project, kind: 'session' as const, id: session_id }
      : run_id !== undefined
        ? { project, kind: 'run' as const, id: run_id }
        : undefined
  const call = to ? await world.ask(to, 'action_call', { job_id }) : null
  return call ?? null
}
