/**
 * Adds current leases to jobs from a view. Heartbeats are not in the journal, so a view contains a
 * lease only as it was granted. The queue's actor has the time of the last heartbeat. Each queue on
 * a page is queried once. The jobs of a queue that does not answer in time are returned unchanged.
 */

import { isRefusal } from '../../protocol/errors.ts'
import type { Renewal } from '../../protocol/jobs/leases.ts'
import type { Job } from '../../protocol/jobs/rows.ts'
import type { AddressOf } from '../../protocol/queries/owners.ts'
import { shardOf } from '../../protocol/subjects.ts'
import type { World } from '../ports.ts'
import { atMost } from '../timing.ts'

/** Maximum number of milliseconds to wait for the reply of a queue. */
const QUEUE_TIMEOUT_MS = 1000

/**
 * Returns the jobs with their current leases: a leased job has its current `lease_expires_at` and,
 * if its worker has sent a heartbeat, `last_heartbeat_at`. All jobs belong to `project`.
 */
export async function withLeases(
  world: World,
  project: string,
  jobs: readonly Job[],
): Promise<readonly Job[]> {
  const queues = new Map<string, { readonly to: AddressOf<'queue'>; readonly job_ids: string[] }>()
  for (const { id, queue, status } of jobs) {
    const shard = status === 'claimed' ? shardOf('run', id, world.settings.shards) : undefined
    if (shard === undefined) continue
    const to: AddressOf<'queue'> = { project, kind: 'queue', id: `${shard}.${queue}` }
    const known = queues.get(to.id)
    if (known) known.job_ids.push(id)
    else queues.set(to.id, { to, job_ids: [id] })
  }
  if (queues.size === 0) return jobs
  const answers = await Promise.all(
    [...queues.values()].map(({ to, job_ids }) => renewals(world, to, job_ids)),
  )
  const renewed = new Map(answers.flat().map(({ job_id, ...lease }) => [job_id, lease]))
  return jobs.map((job) => ({ ...job, ...renewed.get(job.id) }))
}

async function renewals(
  world: World,
  to: AddressOf<'queue'>,
  job_ids: readonly string[],
): Promise<readonly Renewal[]> {
  try {
    const answer = await atMost(world, QUEUE_TIMEOUT_MS, world.ask(to, 'renewals', { job_ids }))
    return answer === undefined || isRefusal(answer) ? [] : answer
  } catch (error) {
    world.log.debug(
      { event: 'queue_leases_read_failed', err: error, queue: to.id },
      'queue leases read failed',
    )
    return []
  }
}
