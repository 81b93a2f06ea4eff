/**
 * Maintains the leases that this gateway counts for a session: removes ended and expired leases,
 * and returns undelivered jobs to their queues. Leases from before the connection are counted in
 * `leases.ts`.
 */

import { queueOfLease } from '../../../protocol/jobs/lease-token.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { queueNamed, queueOf, sendCommand, type WorkerEdge } from '../edge.ts'
import type { Held, Session } from '../session.ts'
import { handleCapacityGain } from './offers.ts'

/** A job whose lease has lapsed (see `removeExpired`), and the address of its queue. */
interface Lapsed {
  readonly job_id: string
  readonly to: AddressOf<'queue'>
}

/**
 * Time in milliseconds for which an expired lease is still counted, because a late heartbeat may
 * arrive for it.
 */
const GRACE_MS = 5000

/**
 * Returns the time until which a lease that is granted or renewed now is counted
 * (`World.monotonic`).
 * @param seconds duration of the lease.
 */
export const leaseUntil = (edge: WorkerEdge, seconds: number): number =>
  edge.world.monotonic() + seconds * 1000 + GRACE_MS

/**
 * Removes a lease that has ended, which frees its slot.
 * @param token if given, the lease is removed only if its token is unknown or equal to this one.
 */
export function removeEndedLease(
  edge: WorkerEdge,
  session: Session,
  job_id: string,
  token?: string,
): void {
  const held = session.held.get(job_id)
  if (!held || (token !== undefined && held.token !== undefined && held.token !== token)) return
  session.release(job_id)
  edge.previews.end(job_id, token)
  void edge.logs.end(job_id, token)
  if (session.closed) return
  handleCapacityGain(edge, session)
}

/**
 * Removes the leases that have expired. Returns the expired leases for which this connection has
 * received no frame for at least one lease duration.
 */
export function removeExpired(edge: WorkerEdge, session: Session): Lapsed[] {
  if (session.leases === 0) return []
  const now = edge.world.monotonic()
  const silent = now - edge.world.settings.timing.lease * 1000
  const lapsed: Lapsed[] = []
  for (const job_id of session.held.keys()) {
    const { until, heard, token, queue } = session.held.get(job_id) as Held
    if (until > now) continue
    removeEndedLease(edge, session, job_id)
    const name = token === undefined ? queue : queueOfLease(token)
    const to = name !== undefined && queueNamed(edge, session.project, job_id, name)
    if (to && heard <= silent) lapsed.push({ job_id, to })
  }
  return lapsed
}

/**
 * Reports lapsed leases to their queues. Without this report, such a lease might last too long,
 * because a new owner of the queue's shard extends every lease to its full duration.
 */
export function reportLapsed(edge: WorkerEdge, session: Session, leases: readonly Lapsed[]): void {
  for (const { to, job_id } of leases)
    void sendCommand(edge, session.connection.grant, to, 'queue.expire', {
      session: session.id,
      job_id,
    })
}

/** Returns an undelivered job to its queue, without counting an attempt. */
export function releaseJob(
  edge: WorkerEdge,
  session: Session,
  { id, lease_token }: ClaimedJob,
): void {
  removeEndedLease(edge, session, id, lease_token)
  const newer = edge.sessions.get(session.id)
  if (newer && newer !== session) removeEndedLease(edge, newer, id, lease_token)
  const to = queueOf(edge, session.project, id, lease_token)
  if (to)
    void sendCommand(edge, session.connection.grant, to, 'queue.release', {
      job_id: id,
      lease_token,
    })
}

/** Returns every undelivered job of a session to its queue. */
export function giveBack(edge: WorkerEdge, session: Session): void {
  for (const { job } of [...session.ready]) {
    withdrawReady(edge, session, job.id)
    releaseJob(edge, session, job)
  }
}

/**
 * Removes a job from the ready jobs, and returns it. Returns undefined when the job is not ready.
 */
export function withdrawReady(
  edge: WorkerEdge,
  session: Session,
  job_id: string,
): ClaimedJob | undefined {
  const at = session.ready.findIndex(({ job }) => job.id === job_id)
  const [item] = at < 0 ? [] : session.ready.splice(at, 1)
  if (item) edge.timerWheel.remove(item)
  return item?.job
}
