/** What whoever wants a job done says about the call. */
import type { World } from '../../gateway/ports.ts'
import type { ActionCall } from '../../protocol/actions/invocation.ts'
import type { Refusal } from '../../protocol/errors.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'

/** The call that a job is for: known to the session whose turn makes it, else to the run. Null: nobody waits for it any more. A refusal: nobody could be asked. */
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
  const call = to
    ? ((await world.ask(to, 'action_call', { job_id })) as ActionCall | null | undefined | Refusal)
    : null
  return call ?? null
}
