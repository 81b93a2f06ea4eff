/**
 * The records and events of jobs, and the job header that a queue stores. A job is a unit of work
 * under a lease.
 */
import { type Static, Type } from 'typebox'
import type { InvocationFacts } from '../actions/invocation.ts'
import { additions } from '../additions.ts'
import { JsonObject, Timestamp } from '../common.ts'
import type { Event, Kind } from '../entry.ts'
import type { JobEnvironment } from '../environments/commands.ts'
import type { Patch } from '../patch.ts'
import { WaitingOn } from '../runs/waiting.ts'

const jobStatuses = ['queued', 'claimed', 'completed', 'failed', 'cancelled'] as const

/** The additions of a job record. `Job` contains their schemas. */
export const jobAdditions = additions({ priority: {}, fairness_key: {}, waiting_on: {} })
export const Job = Type.Object({
  id: Type.String(),
  kind: Type.Enum(['action_execution', 'llm_generation']),
  origin: Type.Enum([
    'loop_action_step',
    'agent_tool_call',
    'agent_llm_call',
    'conversation_tool_call',
    'conversation_llm_call',
    'direct_action_invoke',
    'server_internal',
  ]),
  executor_kind: Type.Enum(['customer_worker', 'server_worker']),
  queue: Type.String(),
  status: Type.Enum([...jobStatuses]),
  action_name: Type.Optional(Type.String()),
  provider: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  environment_id: Type.Optional(Type.String()),
  run_id: Type.Optional(Type.String()),
  step_id: Type.Optional(Type.String()),
  step_key: Type.Optional(Type.String()),
  agent_turn_id: Type.Optional(Type.String()),
  session_id: Type.Optional(Type.String()),
  tool_call_id: Type.Optional(Type.String()),
  priority: Type.Optional(Type.Integer()),
  fairness_key: Type.Optional(Type.String()),
  claim_attempt: Type.Integer({
    description: 'Number of claims of the job; 0 before the first claim',
  }),
  max_attempts: Type.Integer(),
  worker_instance_id: Type.Optional(Type.String()),
  lease_expires_at: Type.Optional(Timestamp),
  last_heartbeat_at: Type.Optional(Timestamp),
  cancel_requested: Type.Boolean(),
  result: Type.Optional(JsonObject),
  error_type: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  waiting_on: Type.Optional(WaitingOn),
  created_at: Timestamp,
  claimed_at: Type.Optional(Timestamp),
  completed_at: Type.Optional(Timestamp),
  updated_at: Timestamp,
})
export type Job = Static<typeof Job>

export const ActionLogEntry = Type.Object({
  id: Type.String(),
  run_id: Type.String(),
  seq: Type.Integer(),
  job_id: Type.Optional(Type.String()),
  step_key: Type.Optional(Type.String()),
  action_name: Type.String(),
  status: Type.Enum(['called', 'completed', 'failed', 'retried']),
  attempt: Type.Integer(),
  parameters: Type.Optional(JsonObject),
  result: Type.Optional(JsonObject),
  error_type: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  worker_instance_id: Type.Optional(Type.String()),
  created_at: Timestamp,
})
export type ActionLogEntry = Static<typeof ActionLogEntry>

/**
 * Returns the owner of a job: the actor that requested the job, stores its parameters and is
 * notified of its end. Returns undefined when the header contains no owner, delivery or run.
 */
export const ownerOf = ({
  owner,
  delivery_id,
  run_id,
}: JobHeader): { readonly kind: Kind; readonly id: string } | undefined =>
  owner ??
  (delivery_id !== undefined
    ? { kind: 'delivery', id: delivery_id }
    : run_id === undefined
      ? undefined
      : { kind: 'run', id: run_id })

/**
 * Kinds of jobs that only the service itself performs and that no list of jobs shows. `delivery`:
 * an attempt of a signed delivery. `opening`: the lookup of the definition for an agent turn that a
 * run requested. `errand`: see `protocol/errand.ts`.
 */
export type Unlisted = 'delivery' | 'opening' | 'errand'
const unlisted: ReadonlySet<string> = new Set<Unlisted>(['delivery', 'opening', 'errand'])
export const isUnlisted = (kind: JobHeader['kind']): kind is Unlisted => unlisted.has(kind)

/**
 * The data that a queue stores about a job until the job ends. The owner of the job stores the
 * parameters.
 */
export interface JobHeader {
  readonly id: string
  readonly kind: Job['kind'] | Unlisted
  readonly delivery_id?: string
  readonly origin: Job['origin']
  readonly executor_kind: Job['executor_kind']
  readonly action_name?: string
  readonly provider?: string
  readonly model?: string
  readonly environment_id?: string
  /**
   * Present if `environment_id` is the id of a managed environment, which must then admit the job.
   */
  readonly environment?: JobEnvironment
  /** The number of the lease that the environment had when it admitted the job. */
  readonly environment_fence?: number
  readonly run_id?: string
  readonly step_id?: string
  readonly step_key?: string
  readonly session_id?: string
  readonly agent_turn_id?: string
  readonly tool_call_id?: string
  /**
   * The owner, which is in the same shard. When absent, `ownerOf` determines it from `delivery_id`
   * or `run_id`.
   */
  readonly owner?: { readonly kind: Kind; readonly id: string }
  readonly priority: number
  readonly fairness_key: string
  /** Time of enqueueing in Unix milliseconds. Retries do not change it. */
  readonly enqueued_at: number
  /**
   * Number of reported failures after which the job fails. For an action step, this is the number
   * of attempts that the step has left.
   */
  readonly max_attempts: number
  /**
   * Number of lost leases after which the job fails. For an action step, this is the number of
   * attempts that the step has left.
   */
  readonly max_losses: number
  /** Only a worker may perform the job, even if the service could. */
  readonly workers_only?: true
  /**
   * The step sets its number of attempts: `max_attempts` bounds the sum of reported failures and
   * lost leases, and `max_losses` is not raised for a repeatable action.
   */
  readonly strict?: true
}

/**
 * Events of a queue. `job` is the patch that views apply to the record of the job. `header` is the
 * data that the queue stores.
 */
export type QueueEvent =
  | (JobEvent & { readonly type: 'job.queued'; readonly header: JobHeader })
  | (JobEvent & {
      readonly type: 'job.claimed'
      readonly header: JobHeader
      readonly lease: LeaseGrant
    })
  | (JobEvent & {
      readonly type: 'job.requeued'
      readonly reason: string
      readonly counted: 'failure' | 'loss' | 'release' | 'none'
      /** The earliest time at which the job may be assigned, in Unix milliseconds. */
      readonly not_before?: number
    })
  /** The back-off before the next attempt has ended. */
  | (JobEvent & { readonly type: 'job.rested' })
  /** The environment admits the job, which now waits for a worker. */
  | (JobEvent & { readonly type: 'job.admitted'; readonly fence: number })
  | (JobEvent & {
      readonly type: 'job.cancel_requested'
      readonly reason?: string
      readonly at: number
      readonly gateway: string
      readonly session: string
    })
  | (JobEvent & {
      readonly type: 'job.completed' | 'job.failed' | 'job.cancelled'
      readonly lease_token?: string
      readonly invocation?: InvocationFacts
      /** Id of the environment that is notified of the end of the job. */
      readonly environment_id?: string
    })
  | {
      readonly type: 'lease.renewed'
      readonly id: string
      readonly expires_at: number
      readonly gateway: string
    }
interface JobEvent extends Event {
  readonly id: string
  readonly job: Patch<Job>
}
export interface LeaseGrant {
  readonly token: string
  readonly attempt: number
  /** Id of the worker session that holds the lease. */
  readonly session: string
  /** Name of the worker instance of the session. */
  readonly instance: string
  /** Id of the gateway to which the session was connected at the time of the claim. */
  readonly gateway: string
  readonly expires_at: number
}
