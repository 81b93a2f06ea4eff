/** The leases a session is known to hold: counting them, forgetting them, giving back what was never handed over. */
import type { Address } from '../../../protocol/entry.ts'
import { queueOfLease } from '../../../protocol/jobs/lease.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { command, queueNamed, queueOf, type Edge } from '../edge.ts'
import { gained } from './offers.ts'
import type { Session } from '../session.ts'

/** A job whose lease showed no life, and its queue. */
interface Lapsed {
  readonly job_id: string
  readonly to: Address
}

/** A lease counts a little longer than it lasts, so that a late heartbeat finds it counted. Milliseconds. */
const GRACE = 5000

/** Until when a lease counts that was granted or renewed now. @param seconds its duration. */
export const leaseUntil = (edge: Edge, seconds: number): number =>
  edge.world.now() + seconds * 1000 + GRACE

/** A lease ended: its slot is free again. With a token, only if that is the lease that is held. */
export function ended(edge: Edge, session: Session, job_id: string, token?: string): void {
  const held = session.held.get(job_id)
  if (!held || (token !== undefined && held.token !== undefined && held.token !== token)) return
  session.held.delete(job_id)
  session.reported.delete(job_id)
  edge.previews.end(job_id, token)
  if (session.closed) return
  gained(edge, session)
}

/** Stop counting leases that showed no life for longer than they last. Gives those of which the connection carried none. */
export function expire(edge: Edge, session: Session): Lapsed[] {
  if (session.leases === 0) return []
  const now = edge.world.now()
  const silent = now - edge.world.settings.timing.lease * 1000
  const lapsed: Lapsed[] = []
  for (const [job_id, { until, heard, token, queue }] of session.held) {
    if (until > now) continue
    ended(edge, session, job_id)
    const name = token === undefined ? queue : queueOfLease(token)
    const to = name !== undefined && queueNamed(edge, session.project, job_id, name)
    if (to && heard <= silent) lapsed.push({ job_id, to })
  }
  return lapsed
}

/** Tell the queues that leases showed no life: after a change of owners they know no better than a full duration. */
export function lapse(edge: Edge, session: Session, leases: readonly Lapsed[]): void {
  for (const { to, job_id } of leases)
    void command(edge, session.connection.grant, to, 'queue.expire', {
      session: session.id,
      job_id,
    })
}

/** Give a job back that was never handed over: it waits again, and no attempt is used. */
export function release(edge: Edge, session: Session, { id, lease_token }: ClaimedJob): void {
  ended(edge, session, id, lease_token)
  const newer = edge.sessions.get(session.id)
  if (newer && newer !== session) ended(edge, newer, id, lease_token)
  const to = queueOf(edge, session.project, id, lease_token)
  if (to)
    void command(edge, session.connection.grant, to, 'queue.release', { job_id: id, lease_token })
}

/** Give every job back that no claim has taken. */
export function giveBack(edge: Edge, session: Session): void {
  for (const { job } of [...session.ready]) {
    withdraw(session, job.id)
    release(edge, session, job)
  }
}

/** Take a job out of those that wait for a claim; undefined when it is not among them. */
export function withdraw(session: Session, job_id: string): ClaimedJob | undefined {
  const at = session.ready.findIndex(({ job }) => job.id === job_id)
  const [item] = at < 0 ? [] : session.ready.splice(at, 1)
  item?.cancel()
  return item?.job
}
