/**
 * Counts the leases that a session already had before its current connection. Leases that are
 * granted later are counted in `assign.ts`.
 *
 * Invariants:
 * L1. A resumed session receives no job until its leases are counted.
 * L2. A job of an earlier connection is returned to its queue only if the worker sent a list of its
 *     leases that lacks the job's lease. It is returned only under the lease that is current in the
 *     queue. The queue ignores the return if it has received a heartbeat under the lease.
 */

import { isRefusal } from '../../../protocol/errors.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import type { WorkerCommands } from '../../../protocol/workers/commands.ts'
import { sleep } from '../../timing.ts'
import { queueNamed, sendCommand, type WorkerEdge } from '../edge.ts'
import type { Session } from '../session.ts'
import { leaseUntil } from './held-leases.ts'
import { handleCapacityGain } from './offers.ts'

type Entered = WorkerCommands['worker.register']['reply']
type Lease = ViewQueries['leases']['reply']['items'][number]
interface Part {
  readonly to: AddressOf<'queue'>
  readonly items: Lease[]
}

/** Time before a failed query to the view is repeated, in milliseconds. */
const RETRY_EVERY_MS = 2000

/**
 * Counts the leases of a resumed session. If the worker sent a list of its leases, the jobs that it
 * never received return to their queues. For a new session that has replaced another session, ends
 * the leases of the other session.
 * @param held tokens of the leases that the worker has; undefined when it sent no list.
 */
export async function countLeases(
  edge: WorkerEdge,
  session: Session,
  { resumed, replaced }: Entered,
  held: readonly string[] | undefined,
): Promise<void> {
  if (resumed) {
    const items = await leasesOf(edge, session, session.id)
    if (held) await compare(edge, session, items, new Set(held))
    else for (const item of items) keep(edge, session, item)
    session.counted = true
    handleCapacityGain(edge, session)
  } else if (replaced && replaced.session !== session.id)
    lose(edge, session, replaced.session, await leasesOf(edge, session, replaced.session))
}

/**
 * Reads the leases of a session from the view. The list is empty if the view does not answer within
 * one heartbeat interval, or if the connection has ended.
 */
async function leasesOf(edge: WorkerEdge, session: Session, id: string): Promise<readonly Lease[]> {
  const { world } = edge
  const end = world.monotonic() + world.settings.timing.cadence * 1000
  while (!session.closed) {
    const answer = await world
      .view(session.project, 'leases', { session: id })
      .catch(() => undefined)
    if (answer !== undefined && !isRefusal(answer)) return answer.items
    if (world.monotonic() >= end) break
    await sleep(world, RETRY_EVERY_MS)
  }
  return []
}

function keep(edge: WorkerEdge, session: Session, { job_id, queue, session_id }: Lease): void {
  session.hold(job_id, {
    until: leaseUntil(edge, edge.world.settings.timing.lease),
    heard: edge.world.monotonic(),
    queue,
    beaten: 0,
    ...(session_id !== undefined && { session_id }),
  })
}

/**
 * Compares the lease tokens of the queues with those of the worker. Leases that the worker has, and
 * leases of a queue that does not answer, are counted. If only the queue has the lease of a job,
 * the job is returned to the queue.
 */
async function compare(
  edge: WorkerEdge,
  session: Session,
  items: readonly Lease[],
  held: ReadonlySet<string>,
): Promise<void> {
  const asked = byQueue(edge, session, items).map(async ({ to, items }) => {
    const granted = await grantedBy(edge, session, to)
    for (const item of items) {
      const lease_token = granted?.get(item.job_id)
      if (!granted || (lease_token !== undefined && held.has(lease_token)))
        keep(edge, session, item)
      else if (lease_token !== undefined) {
        edge.world.log.info(
          {
            event: 'job_lease_undelivered',
            project: session.project,
            instance: session.instance,
            job: item.job_id,
          },
          'leased job not delivered to worker; job requeued',
        )
        const input = { job_id: item.job_id, lease_token }
        await sendCommand(edge, session.connection.grant, to, 'queue.release', input)
      }
    }
  })
  await Promise.all(asked)
}

/**
 * Returns the lease tokens of a session in a queue, by job id; undefined when the queue does not
 * answer.
 */
async function grantedBy(
  { world }: WorkerEdge,
  { id }: Session,
  to: AddressOf<'queue'>,
): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const answer = await world.ask(to, 'leases', { session: id })
    if (isRefusal(answer)) return undefined
    return new Map(answer.map((one) => [one.job_id, one.lease_token]))
  } catch (error) {
    world.log.debug({ event: 'queue_leases_read_failed', err: error }, 'queue leases read failed')
    return undefined
  }
}

function lose(edge: WorkerEdge, session: Session, lost: string, items: readonly Lease[]): void {
  for (const part of byQueue(edge, session, items)) {
    const job_ids = part.items.map(({ job_id }) => job_id)
    void sendCommand(edge, session.connection.grant, part.to, 'queue.lose', {
      session: lost,
      job_ids,
    })
  }
}

function byQueue(edge: WorkerEdge, session: Session, items: readonly Lease[]): readonly Part[] {
  const parts = new Map<string, Part>()
  for (const item of items) {
    const to = queueNamed(edge, session.project, item.job_id, item.queue)
    if (!to) continue
    const part = parts.get(to.id) ?? { to, items: [] }
    part.items.push(item)
    parts.set(to.id, part)
  }
  return [...parts.values()]
}
