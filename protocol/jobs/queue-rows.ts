/**
 * The row for the queues of a project: their open jobs, and the workers that take jobs from them.
 */
import { type Static, Type } from 'typebox'
import { Closed, cutting, listOf, Timestamp } from '../common.ts'
import { query } from '../contract.ts'

/** Maximum number of workers that the record of a queue lists. */
export const MAX_QUEUE_WORKERS = 100

const open = {
  waiting: Type.Integer({ description: 'Without a lease; includes jobs that wait for a retry' }),
  in_work: Type.Integer({ description: 'Leased to a worker, or to the service itself' }),
  oldest_waiting_since: Type.Optional(Timestamp),
}
/** The open jobs of a queue that the same workers can perform. */
export const QueueLine = Type.Object({
  action_name: Type.Optional(Type.String()),
  provider: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  environment_id: Type.Optional(Type.String({ description: 'Only its worker can take the jobs' })),
  ...open,
})
export type QueueLine = Static<typeof QueueLine>
export const Queue = Type.Object({
  name: Type.String(),
  ...open,
  worker_count: Type.Integer({ description: 'Connected workers that take from the queue' }),
  slots_used: Type.Integer({ description: 'Of these workers, also by jobs of other queues' }),
  slots_free: Type.Integer({ description: 'Of these workers that are not draining' }),
  lines: Type.Array(QueueLine, { description: 'Open jobs by action, or by model' }),
  workers: Type.Array(
    Type.Object({
      worker_instance_id: Type.String(),
      name: Type.Optional(Type.String()),
      state: Type.Enum(['online', 'draining']),
      slots_used: Type.Integer(),
      slots_free: Type.Integer({ description: '0 while the worker is draining' }),
    }),
    { description: `In the order of their ids, at most ${MAX_QUEUE_WORKERS}` },
  ),
})
export type Queue = Static<typeof Queue>

export const queues = {
  'queue.list': query('GET /projects/:project/queues', {
    summary: 'Queues with open jobs or with workers of their own: what waits, and who takes it',
    tag: 'workers',
    permission: 'project.view',
    query: Closed(cutting),
    reply: listOf(Queue),
  }),
} as const
