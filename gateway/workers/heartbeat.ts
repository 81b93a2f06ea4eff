/**
 * Handles the frames that renew the lease of a job: heartbeats and chunks of model output. The
 * answer to a heartbeat may contain a cancel request. Chunks are also published to the followers of
 * the agent session. Also handles log lines, which need a current lease but do not renew it.
 */
import { isRefusal } from '../../protocol/errors.ts'
import type { Up } from '../../protocol/workers/socket.ts'
import { unsafeValueFault } from '../http/validate.ts'
import { queueOf, sendCommand, type WorkerEdge } from './edge.ts'
import { leaseUntil } from './jobs/held-leases.ts'
import { endLease } from './presence.ts'
import { recordFrame, type Session } from './session.ts'

type Beat = {
  readonly alive: boolean
  readonly cancel?: { readonly reason?: string; readonly requested_at: string }
}
type Frame<T> = Extract<Up, { type: T }>

/**
 * Handles `job.heartbeat`: renews the lease. If the lease is lost, the answer contains a cancel
 * request, so that the worker stops. No answer is sent when the queue refuses or does not answer.
 */
export async function handleHeartbeat(
  edge: WorkerEdge,
  session: Session,
  { job_id, lease_token, message_id }: Frame<'job.heartbeat'>,
): Promise<void> {
  recordFrame(session, job_id, lease_token, edge.world.monotonic())
  const beat = await renew(edge, session, job_id, lease_token)
  if (!beat) return
  const cancel = beat.alive
    ? beat.cancel && { job_id, ...beat.cancel }
    : { job_id, reason: 'lease_lost' }
  session.connection.send({
    type: 'job.heartbeat.ack',
    ...(message_id !== undefined && { message_id }),
    job_id,
    ...(cancel && { cancel, directives: { should_cancel: true } }),
  })
}

/**
 * Handles `generation.delta`, a chunk of model output. Publishes it to the followers of the agent
 * session, and renews the lease at most once per heartbeat interval. If the lease is lost, an error
 * is sent to the worker. A chunk under an unknown lease is ignored.
 */
export async function handleDelta(
  edge: WorkerEdge,
  session: Session,
  { job_id, lease_token, message_id, delta, sequence }: Frame<'generation.delta'>,
): Promise<void> {
  const held = session.held.get(job_id)
  const now = edge.world.monotonic()
  if (!held || (held.token !== undefined && held.token !== lease_token)) return
  held.heard = now
  const { session_id, model } = held
  if (session_id !== undefined && !unsafeValueFault(delta)) {
    edge.previews.publish(
      {
        project: session.project,
        session_id,
        job_id,
        attempt: lease_token,
        worker_id: session.instance,
        model,
      },
      delta,
      sequence,
    )
  }
  if (now - held.beaten < edge.world.settings.timing.cadence * 1000) return
  held.beaten = now
  const beat = await renew(edge, session, job_id, lease_token)
  if (beat && !beat.alive)
    session.connection.fail('lease_lost', `the lease of ${job_id} is lost`, message_id)
}

/**
 * Handles `job.log`: stores lines that the job printed. The queue confirms the lease. A frame under
 * a lease that is not current adds nothing, and an error is sent to the worker.
 */
export function handleLog(
  edge: WorkerEdge,
  session: Session,
  { job_id, lease_token, message_id, lines }: Frame<'job.log'>,
): void {
  const queue = queueOf(edge, session.project, job_id, lease_token)
  const lost = () =>
    session.connection.fail('lease_lost', `the lease of ${job_id} is lost`, message_id)
  recordFrame(session, job_id, lease_token, edge.world.monotonic())
  const { project, id } = session
  if (queue) edge.logs.write({ project, queue, job_id, lease_token, session: id }, lines, lost)
  else lost()
}

async function renew(
  edge: WorkerEdge,
  session: Session,
  job_id: string,
  lease_token: string,
): Promise<Beat | undefined> {
  const to = queueOf(edge, session.project, job_id, lease_token)
  if (!to) return { alive: false }
  const outcome = await sendCommand(edge, session.connection.grant, to, 'queue.heartbeat', {
    job_id,
    lease_token,
    gateway: edge.world.node,
  })
  if (isRefusal(outcome)) return undefined
  const beat = outcome.reply
  const held = session.held.get(job_id)
  if (!beat.alive) endLease(edge, session, job_id, lease_token)
  else if (held && (held.token ?? lease_token) === lease_token) {
    held.until = leaseUntil(edge, edge.world.settings.timing.lease)
    held.beaten = edge.world.monotonic()
  }
  return beat
}
