/**
 * The row for the queues of a project: their open jobs, and the workers that accept jobs from them.
 */
import { type Static, Type } from 'typebox'
import { Closed, cutting, listOf, Timestamp } from '../common.ts'
import { query } from '../contract.ts'

/** Maximum number of workers that the record of a queue lists. */
export const MAX_QUEUE_WORKERS = 100

const open = {
  waiting: Type.Integer({
    description: 'Number of jobs without a lease, including jobs that wait for a retry',
  }),
  in_work: Type.Integer({
    description: 'Number of jobs that are leased to a worker or to an executor of the service',
  }),
  oldest_waiting_since: Type.Optional(Timestamp),
}
/** A group of open jobs of a queue, all of which the same workers can perform. */
export const QueueLine = Type.Object({
  action_name: Type.Optional(Type.String()),
  provider: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  environment_id: Type.Optional(
    Type.String({ description: 'Id of the environment whose worker alone can claim the jobs' }),
  ),
  ...open,
})
export type QueueLine = Static<typeof QueueLine>
export const Queue = Type.Object({
  name: Type.String(),
  ...open,
  worker_count: Type.Integer({
    description: 'Number of connected workers that claim from the queue',
  }),
  slots_used: Type.Integer({
    description: 'Occupied slots of these workers, including slots with jobs of other queues',
  }),
  slots_free: Type.Integer({
    description: 'Free slots of these workers, except those that are draining',
  }),
  lines: Type.Array(QueueLine, { description: 'Open jobs, grouped by action or by model' }),
  workers: Type.Array(
    Type.Object({
      worker_instance_id: Type.String(),
      name: Type.Optional(Type.String()),
      state: Type.Enum(['online', 'draining']),
      slots_used: Type.Integer(),
      slots_free: Type.Integer({ description: 'Free slots of the worker; 0 while it is draining' }),
    }),
    { description: `Workers of the queue in the order of their ids, at most ${MAX_QUEUE_WORKERS}` },
  ),
})
export type Queue = Static<typeof Queue>

export const queues = {
  'queue.list': query('GET /projects/:project/queues', {
    summary:
      'Queues that have open jobs or workers, with the numbers of their jobs and their workers',
    tag: 'workers',
    permission: 'project.view',
    query: Closed(cutting),
    reply: listOf(Queue),
  }),
} as const
