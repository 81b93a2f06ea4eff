/**
 * Events of environments and of the actors of their names, and the stored state of an environment.
 * `record` is the patch that the actor and the views apply to the record of the environment.
 */
import type { InternalBinding } from '../blueprints/stored.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import type { OperationKind } from './commands.ts'
import type { Environment, Holder, StartWorker } from './schema.ts'

/** Facts about the creation of an environment that its record does not show. */
export interface EnvironmentOrigin {
  readonly runtime_version?: string
  /** Id of the actor of the name; absent for environments of runs, agents and loops. */
  readonly holder?: string
}
/** A job that is pinned to the environment and has not ended. */
export interface EnvironmentJob {
  /** Id of the queue actor. */
  readonly queue: string
  readonly holder: Holder
  readonly passive?: true
  readonly admitted?: true
  /** A request to fail or cancel the job was sent to the queue. */
  readonly refused?: true
}
/** The operation that is requested from a provider. Times are Unix milliseconds. */
export interface Operation {
  readonly number: number
  readonly kind: OperationKind
  /** Time of the first request. */
  readonly since: number
  /** Time of the last request. */
  readonly asked: number
  /** Number of times that the operation was requested. */
  readonly requests: number
  /** Id of the host that claimed the operation. */
  readonly host?: string
  /** Time of the last report from that host. */
  readonly progress?: number
}

type Recorded = Event & { readonly id: string; readonly record: Patch<Environment> }

export type EnvironmentEvent =
  | (Event & {
      readonly type: 'environment.created'
      readonly id: string
      readonly environment: Environment
      readonly origin: EnvironmentOrigin
      /**
       * The use of the environment ends with its run, and the run does not know the environment.
       * Absent in events of earlier releases.
       */
      readonly notifies_run?: true
    })
  /** A client changed the record. */
  | (Recorded & { readonly type: 'environment.updated'; readonly changes: Changes })
  /** The service changed the record, for example its status, repositories or worker session. */
  | (Recorded & { readonly type: 'environment.status_changed' })
  | (Recorded & { readonly type: 'environment.destroyed' })
  /** A person opened a terminal. The record does not change. */
  | (Event & {
      readonly type: 'environment.terminal_opened'
      readonly id: string
      readonly terminal_id: string
    })
  | (Event & {
      readonly type: 'environment.terminal_closed'
      readonly id: string
      readonly terminal_id: string
    })
  /** A lease was granted or renewed. `until`: Unix milliseconds. */
  | (Recorded & {
      readonly type: 'environment.leased'
      readonly fence: number
      readonly until: number
    })
  | (Recorded & { readonly type: 'environment.lease_ended'; readonly expired?: true })
  | EnvironmentPrivateEvent
type EnvironmentPrivateEvent =
  | (Event & {
      readonly type: 'environment.job_added'
      readonly job_id: string
      readonly job: EnvironmentJob
    })
  | (Event & {
      readonly type: 'environment.jobs_admitted'
      readonly jobs: readonly PinnedJob[]
      readonly fence: number
    })
  | (Event & {
      readonly type: 'environment.jobs_refused'
      readonly jobs: readonly PinnedJob[]
      readonly error_type: string
      readonly error_message: string
    })
  | (Event & { readonly type: 'environment.job_ended'; readonly job_id: string })
  /** The environment was destroyed, so the queues cancel its jobs. */
  | (Event & {
      readonly type: 'environment.jobs_cancelled'
      readonly jobs: readonly PinnedJob[]
      readonly reason: string
    })
  | (Event & {
      readonly type: 'environment.operation_requested'
      readonly operation: Operation
      readonly environment_id: string
      readonly provider: string
      readonly place?: string
      /** Only for a start: the number of the worker. */
      readonly generation?: number
    })
  | (Event & {
      readonly type: 'environment.operation_claimed'
      readonly number: number
      readonly host: string
      readonly place: string
      readonly isolation?: string
      readonly token_hash?: string
      readonly at: number
    })
  | (Event & { readonly type: 'environment.operation_progressed'; readonly at: number })
  | (Event & {
      readonly type: 'environment.operation_ended'
      readonly number: number
      readonly outcome: 'done' | 'failed'
      readonly at: number
      /**
       * The host stopped reporting while it prepared the workspace, so another place may prepare
       * the workspace.
       */
      readonly displaced?: true
    })
  /** The worker was requested. `launch`: the settings for this start and later starts. */
  | (Event & { readonly type: 'environment.worker_requested'; readonly launch: StartWorker })
  /** `since`: time at which the need for a worker arose; absent when no worker is needed. */
  | (Event & { readonly type: 'environment.worker_wanted'; readonly since?: number })
  | (Event & {
      readonly type: 'environment.worker_connecting'
      readonly instance: string
      readonly generation: number
      readonly at: number
    })
  | (Event & {
      readonly type: 'environment.worker_connected'
      readonly session: string
      readonly at: number
    })
  /**
   * The worker has ended. `failed`: the worker ended unexpectedly, so its next start is delayed.
   * `session` and `jobs` identify the leases that the worker may have held.
   */
  | (Event & {
      readonly type: 'environment.worker_ended'
      readonly at: number
      readonly failed?: true
      readonly session?: string
      readonly jobs: readonly PinnedJob[]
    })
  /**
   * The end of the last lease was processed. With the lifetime `lease`, the environment is then
   * destroyed or retained.
   */
  | (Event & { readonly type: 'environment.lease_settled' })
  /** Soft event: the place reported that the environment is present. */
  | (Event & { readonly type: 'environment.heard'; readonly at: number })
  /** A teardown has failed. The next attempt is due at `until`, in Unix milliseconds. */
  | (Event & { readonly type: 'environment.teardown_delayed'; readonly until: number })
/** The ids of a pinned job and of its queue actor. */
export interface PinnedJob {
  readonly job_id: string
  readonly queue: string
}

/** State of an environment. Times are Unix milliseconds. */
export interface ExistingEnvironment {
  /** The binding of the environment to a blueprint. */
  readonly binding?: InternalBinding
  /** The record without `jobs_in_progress`, which is derived from `jobs`. */
  readonly record: Environment
  readonly origin: EnvironmentOrigin
  readonly jobs: Readonly<Record<string, EnvironmentJob>>
  /** The number of leases so far. */
  readonly fence: number
  readonly operation?: Operation
  /** The number of operations so far. */
  readonly operations: number
  readonly worker: WorkerOfEnvironment
  /** Time of the last report from the place. */
  readonly heard: number
  /** Number of failed teardowns. */
  readonly teardowns: number
  /** Time of the next teardown after a failed one. */
  readonly teardown_at?: number
  /** Time since which the environment has been retained. */
  readonly retained_at?: number
  readonly lease_until?: number
  /**
   * The last lease has ended, and its end has not been processed yet (`environment.lease_settled`).
   */
  readonly lease_over?: 'released' | 'expired'
}
export interface WorkerOfEnvironment {
  /** The number of workers so far, which is also the number of the current worker. */
  readonly generation: number
  readonly state: 'stopped' | 'starting' | 'connected'
  /** Time at which the worker entered this state. */
  readonly since: number
  /** Time at which the need for a worker arose. */
  readonly wanted?: number
  /** A client requested the worker, so the worker is needed even without jobs. */
  readonly requested?: true
  /** Number of consecutive failures of the worker since its last connection. */
  readonly failures: number
  readonly token_hash?: string
  readonly instance?: string
  readonly session?: string
  readonly launch: StartWorker
}
/** The reply to the owner query `standing`. */
export interface EnvironmentStanding {
  readonly environment: Environment
  readonly worker: Pick<WorkerOfEnvironment, 'state' | 'generation' | 'session' | 'instance'>
}

/** Events of the actor that reserves the name of an environment; `key` is a `scopeKey`. */
export type EnvironmentNameEvent =
  /** Only from actors whose id is derived from an idempotency key. */
  | (Event & { readonly type: 'environment_name.keyed' })
  | (Event & {
      readonly type: 'environment_name.taken'
      readonly key: string
      readonly environment_id: string
      readonly provider: string
      /** Present until the environment uses the key: the request that may release it. */
      readonly reservation?: string
    })
  | (Event & {
      readonly type: 'environment_name.freed'
      readonly environment_id: string
      readonly keys: readonly string[]
    })
