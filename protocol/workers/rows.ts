/** The rows and the record of workers. The frames of the worker socket are in `socket.ts`. */
import { type Static, Type } from 'typebox'
import { additions } from '../additions.ts'
import { Closed, cutting, listOf, Timestamp } from '../common.ts'
import { command, query, stream } from '../contract.ts'

/** A job whose lease a worker holds. */
const WorkerJob = Type.Object({
  job_id: Type.String(),
  queue: Type.String(),
  kind: Type.String(),
  action_name: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  run_id: Type.Optional(Type.String()),
  step_key: Type.Optional(Type.String()),
  session_id: Type.Optional(Type.String()),
  claimed_at: Type.Optional(Timestamp),
})
export type WorkerJob = Static<typeof WorkerJob>
/** Maximum number of jobs in the record of a worker. */
export const MAX_WORKER_JOBS = 100

/** The additions of a worker record. */
const workerAdditions = additions({ gateway: {}, draining: {}, slots_free: {}, jobs: {} })
export const Worker = Type.Object({
  worker_instance_id: Type.String(),
  name: Type.Optional(Type.String()),
  version: Type.Optional(Type.String()),
  state: Type.Enum(['online', 'draining', 'stale', 'ended'], {
    description:
      'State of the worker. stale: its connection was lost; ended: it has drained and disconnected',
  }),
  concurrency_limit: Type.Integer(),
  leased: Type.Integer(),
  queues: Type.Array(Type.String()),
  action_names: Type.Array(Type.String()),
  models: Type.Array(Type.Object({ provider: Type.String(), model: Type.String() })),
  capabilities: Type.Array(Type.String()),
  environment_id: Type.Optional(Type.String()),
  principal_id: Type.String(),
  connected_at: Timestamp,
  last_seen_at: Timestamp,
  gateway: Type.Optional(
    Type.String({ description: 'Id of the gateway to which the worker is or was connected' }),
  ),
  draining: Type.Optional(Type.Boolean({ description: 'Whether the worker claims no more jobs' })),
  slots_free: Type.Optional(
    Type.Integer({ description: 'Free slots of the worker; 0 unless it is online' }),
  ),
  jobs: Type.Optional(
    Type.Array(WorkerJob, {
      description:
        'Jobs that are leased to the worker and that the caller may read; ' +
        `at most ${MAX_WORKER_JOBS}`,
    }),
  ),
})

export type Worker = Static<typeof Worker>

export const workers = {
  'worker.list': query('GET /projects/:project/workers', {
    summary: 'Workers that were seen recently, with their queues, actions, models and leased jobs',
    tag: 'workers',
    permission: 'project.view',
    viewer: true,
    query: Closed({ ...cutting, include: workerAdditions.include }),
    additions: workerAdditions.additions,
    reply: listOf(Worker),
  }),
  'worker.socket': stream('GET /projects/:project/workers/socket', {
    summary: 'The worker socket (WebSocket)',
    tag: 'workers',
    permission: 'work.execute',
    environment: true,
    stream: 'socket',
  }),
  'worker.drain': command('POST /projects/:project/workers/:worker_instance_id/drain', {
    summary: 'Ask a worker to finish its jobs and stop claiming',
    tag: 'workers',
    permission: 'project.edit',
    to: { kind: 'worker', derive: 'worker_instance_id', prefix: 'worker' },
    body: Closed({}),
    bodyOptional: true,
    reply: Type.Object({ worker_instance_id: Type.String(), state: Type.String() }),
    status: 202,
    errors: ['not_found'],
  }),
} as const
