/**
 * The worker socket: frames in both directions, errors, close codes, size limits and the
 * registration. Also the events of workers. Frames are JSON text, with one object per message. The
 * timing is in `timing.ts`, and the messages between nodes of the service are in `messages.ts`.
 */
import { type Static, Type } from 'typebox'
import { JsonObject, Timestamp, wellFormed } from '../common.ts'
import type { Event } from '../entry.ts'
import { logUp } from '../jobs/logs.ts'
import type { JobHeader } from '../jobs/rows.ts'
import { terminalDown, terminalUp } from './terminals.ts'

const message_id = Type.Optional(Type.String({ minLength: 1, maxLength: 128 }))

const Names = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 1000 }),
)

const Queues = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: 256, ...wellFormed }), { maxItems: 1000 }),
)

const Models = Type.Optional(
  Type.Array(
    Type.Object({
      provider: Type.String({ maxLength: 256 }),
      model: Type.String({ maxLength: 256 }),
    }),
    { maxItems: 1000 },
  ),
)

const Slots = Type.Optional(Type.Integer({ minimum: 0, maximum: 100_000 }))

/**
 * The frames that a worker sends, by `type`. Unknown fields are accepted, because workers may be
 * older or newer than the server.
 */
export const up = {
  'worker.register': Type.Object({
    type: Type.Literal('worker.register'),
    message_id,
    worker_instance_id: Type.String({ minLength: 1, maxLength: 256 }),
    worker_session_token: Type.Optional(Type.String({ maxLength: 256 })),
    leases: Type.Optional(
      Type.Array(Type.String({ maxLength: 256 }), {
        maxItems: 10_000,
        description:
          'Lease tokens of the jobs that the worker executes or has not reported yet. With a ' +
          'session token: jobs that are leased to the session and not listed were never ' +
          'received; they are offered again and no attempt is counted. If absent, such jobs wait ' +
          'until their leases expire',
      }),
    ),
    concurrency_limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    available_slots: Slots,
    name: Type.Optional(Type.String({ maxLength: 256 })),
    version: Type.Optional(Type.String({ maxLength: 256 })),
    environment_id: Type.Optional(Type.String({ maxLength: 128 })),
    capabilities: Names,
    queues: Queues,
    action_names: Names,
    models: Models,
    frames: Type.Optional(
      Type.Array(Type.String({ maxLength: 64 }), {
        maxItems: 100,
        description: 'Optional frame types that the worker wants to send, such as job.log',
      }),
    ),
  }),
  'worker.ready': Type.Object({
    type: Type.Literal('worker.ready'),
    message_id,
    available_slots: Slots,
    queues: Queues,
    action_names: Names,
    models: Models,
  }),
  'jobs.claim': Type.Object({
    type: Type.Literal('jobs.claim'),
    message_id,
    available_slots: Slots,
    queues: Queues,
    action_names: Names,
    models: Models,
  }),
  'job.heartbeat': Type.Object({
    type: Type.Literal('job.heartbeat'),
    message_id,
    job_id: Type.String(),
    lease_token: Type.String(),
  }),
  'job.report': Type.Object({
    type: Type.Literal('job.report'),
    message_id,
    job_id: Type.String(),
    lease_token: Type.String(),
    status: Type.Optional(Type.Enum(['completed', 'failed', 'cancelled'])),
    result: Type.Optional(JsonObject),
    error_type: Type.Optional(Type.String()),
    error_message: Type.Optional(Type.String()),
  }),
  'generation.delta': Type.Object({
    type: Type.Literal('generation.delta'),
    message_id,
    job_id: Type.String(),
    lease_token: Type.String(),
    sequence: Type.Integer({ minimum: 0 }),
    delta: JsonObject,
  }),
  'worker.draining': Type.Object({ type: Type.Literal('worker.draining'), message_id }),
  keepalive: Type.Object({ type: Type.Literal('keepalive'), message_id }),
  ...logUp,
  ...terminalUp,
} as const

export type Up = { [K in keyof typeof up]: Static<(typeof up)[K]> }[keyof typeof up]

export type Register = Static<(typeof up)['worker.register']>

/**
 * The filters of a claim. An absent list of queues matches any queue;
 * `gateway/workers/jobs/eligible.ts` defines which jobs the other filters match.
 */
export interface Filters {
  readonly queues?: readonly string[]
  readonly action_names?: readonly string[]
  readonly models?: readonly { readonly provider: string; readonly model: string }[]
  readonly environment_id?: string
  /** Only jobs that are pinned to the environment match. */
  readonly pinned_only?: true
}

/** A leased job as a worker receives it. The schema is closed. */
export const ClaimedJob = Type.Object(
  {
    id: Type.String(),
    kind: Type.Unsafe<JobHeader['kind']>(Type.String()),
    origin: Type.Unsafe<JobHeader['origin']>(Type.String()),
    executor_kind: Type.Unsafe<JobHeader['executor_kind']>(Type.String()),
    queue: Type.String(),
    action_name: Type.Optional(Type.String()),
    environment_id: Type.Optional(Type.String()),
    provider: Type.Optional(Type.String()),
    model: Type.Optional(Type.String()),
    run_id: Type.Optional(Type.String()),
    step_id: Type.Optional(Type.String()),
    agent_turn_id: Type.Optional(Type.String()),
    session_id: Type.Optional(Type.String()),
    tool_call_id: Type.Optional(Type.String()),
    delivery_id: Type.Optional(Type.String()),
    spec: JsonObject,
    lease_token: Type.String({ description: 'Proves the lease in heartbeats and reports' }),
    claim_attempt: Type.Integer({ minimum: 1 }),
    lease_duration_seconds: Type.Number(),
    heartbeat_cadence_seconds: Type.Number(),
  },
  { additionalProperties: false },
)

export type ClaimedJob = Readonly<Static<typeof ClaimedJob>>

const echoed = Type.Optional(
  Type.String({ description: 'message_id of the frame to which this frame replies' }),
)

const cancelling = {
  job_id: Type.String(),
  reason: Type.Optional(Type.String()),
  requested_at: Type.Optional(Timestamp),
}

const frameErrors = [
  'invalid_actor',
  'worker_instance_conflict',
  'register_failed',
  'environment_forbidden',
  'environment_conflict',
  'claim_failed',
  'temporarily_unavailable',
  'lease_lost',
  'not_registered',
  'bad_frame',
  'unknown_frame',
  'payload_too_large',
  'rate_limit_exceeded',
] as const

export type FrameError = (typeof frameErrors)[number]

/** The frames that the server sends, by `type`. */
export const down = {
  'worker.registered': Type.Object({
    type: Type.Literal('worker.registered'),
    message_id: echoed,
    worker_session_token: Type.String(),
    lease: Type.Object({
      lease_duration_seconds: Type.Number(),
      heartbeat_cadence_seconds: Type.Number(),
    }),
    frames: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Optional frame types of the registration that are accepted',
      }),
    ),
  }),
  'jobs.claimed': Type.Object({
    type: Type.Literal('jobs.claimed'),
    message_id: echoed,
    jobs: Type.Unsafe<readonly ClaimedJob[]>(Type.Array(ClaimedJob)),
  }),
  'work.available': Type.Object({ type: Type.Literal('work.available') }),
  'job.heartbeat.ack': Type.Object({
    type: Type.Literal('job.heartbeat.ack'),
    message_id: echoed,
    job_id: Type.String(),
    cancel: Type.Optional(Type.Object(cancelling)),
    directives: Type.Optional(Type.Object({ should_cancel: Type.Boolean() })),
  }),
  'job.report.ack': Type.Object({
    type: Type.Literal('job.report.ack'),
    message_id: echoed,
    job_id: Type.String(),
    duplicate: Type.Optional(Type.Boolean()),
  }),
  'job.cancel': Type.Object({
    type: Type.Literal('job.cancel'),
    message_id: echoed,
    ...cancelling,
  }),
  'worker.drain': Type.Object({ type: Type.Literal('worker.drain'), message_id: echoed }),
  'worker.draining.ack': Type.Object({
    type: Type.Literal('worker.draining.ack'),
    message_id: echoed,
  }),
  keepalive: Type.Object({ type: Type.Literal('keepalive'), message_id: echoed }),
  ...terminalDown,
  error: Type.Object({
    type: Type.Literal('error'),
    message_id: echoed,
    error: Type.Object({ code: Type.Enum([...frameErrors]), message: Type.String() }),
  }),
} as const

export type Down = { [K in keyof typeof down]: Static<(typeof down)[K]> }[keyof typeof down]

/**
 * Close codes of the sockets of workers and terminals. Workers derive only a reconnect delay from
 * them, and published workers reconnect without a delay after 1000 (normal closure) or 1001 (going
 * away). The service therefore never closes a worker's socket with these codes. A worker that shuts
 * down closes its socket with 1000. The gateway closes the socket of a terminal with 1000 when the
 * terminal has ended.
 */
export const closeCodes = {
  drained: 1000,
  internal: 1011,
  restart: 1012,
  malformed: 4400,
  invalid_actor: 4401,
  forbidden: 4403,
  project_deleted: 4404,
  register_timeout: 4408,
  instance_conflict: 4409,
  superseded: 4410,
  too_many_frames: 4429,
} as const

/**
 * Subprotocols for clients that cannot set headers. The server selects `socketProtocol`.
 * `socketBearerPrefix` is the prefix of a subprotocol that contains the key in base64url.
 */
export const socketProtocol = 'service.worker.v1'

export const socketBearerPrefix = 'service.bearer.'

/**
 * Size limits in bytes. `frame`: an inbound frame. `result`: the result of a job. `output`: the
 * output of a run as JSON, which clients must be able to read as one line of a stream. `outputs`:
 * all step outputs that a run stores. `spec`: the spec of an assigned job. `outbound`: an outbound
 * frame.
 */
export const sizes = {
  frame: 16 * 1_048_576,
  result: 1_048_576,
  output: 4 * 1_048_576,
  outputs: 6 * 1_048_576,
  spec: 768 * 1024,
  outbound: 900 * 1024,
} as const

/**
 * Error types of reports that have a meaning of their own. `over_capacity`: the worker had no free
 * slot, so the job returns to its queue, and no attempt is used. `cancelled`: the worker stopped
 * the job. `result_invalid` and `result_too_large`: the result cannot be stored, and the job fails
 * without another attempt.
 */
export const reportErrors = {
  over_capacity: 'WorkerOverCapacity',
  cancelled: 'Cancelled',
  result_invalid: 'ResultInvalid',
  result_too_large: 'ResultTooLarge',
} as const

/** The registration of a worker instance. Times are Unix milliseconds. */
export interface Registration {
  readonly instance: string
  /** The id of the worker session. Its token is stored only as a hash (SHA-256, hex). */
  readonly session: string
  readonly token_hash: string
  readonly generation: number
  readonly gateway: string
  readonly principal_id: string
  readonly concurrency_limit: number
  readonly name?: string
  readonly version?: string
  readonly environment_id?: string
  /**
   * The environment was attached after the registration. It stays attached until the session ends,
   * or until the worker registers with an `environment_id`.
   */
  readonly attached?: true
  readonly capabilities: readonly string[]
  readonly queues: readonly string[]
  readonly action_names: readonly string[]
  readonly models: readonly { readonly provider: string; readonly model: string }[]
  readonly connected_at: number
}

/** A worker session and the environment whose jobs it accepts. */
export interface ServedEnvironment {
  readonly session: string
  readonly environment_id: string
}

/** Events of the actor of a worker instance. */
export type WorkerEvent =
  /**
   * The worker has registered, or has changed the work that it accepts. `replaced`: the session and
   * gateway of the connection that the new connection replaces. `left`: a session, and the
   * environment that it no longer serves.
   */
  | (Event & {
      readonly type: 'worker.registered'
      readonly registration: Registration
      readonly replaced?: { readonly session: string; readonly gateway: string }
      readonly left?: ServedEnvironment
    })
  /** The worker has attached its workspace as the environment of the registration. */
  | (Event & { readonly type: 'worker.attached'; readonly registration: Registration })
  | (Event & {
      readonly type:
        | 'worker.disconnected'
        | 'worker.stale'
        | 'worker.draining'
        | 'worker.drain_requested'
        | 'worker.drain_cleared'
      readonly instance: string
      readonly at: number
      readonly gateway?: string
      readonly session?: string
      /** The session that has ended, and the environment that it no longer serves. */
      readonly left?: ServedEnvironment
      /**
       * Present only with `left`: the connection, which must register again if it is still open.
       */
      readonly expelled?: { readonly gateway: string; readonly generation: number }
    })
  | (Event & { readonly type: 'worker.seen'; readonly at: number; readonly leases: number })
