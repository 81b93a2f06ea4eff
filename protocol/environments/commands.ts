/**
 * Internal commands of environments, which queues, hosts and gateways exchange with them.
 *
 * A job that is pinned to an environment waits in its queue until the environment admits it:
 *
 *     queue        `environment.use`   the job exists            → environment
 *     environment  `queue.admit`       the job may be claimed    → queue
 *     queue        `environment.done`  the job has ended         → environment
 *     environment  `queue.unavailable` no worker connected: the job fails → queue
 *
 * A task of a provider (prepare, start the worker, destroy) is an OPERATION. The environment
 * requests one operation at a time and repeats the request until a host claims the operation. Only
 * that host may report the outcome. Requests may be lost or repeated.
 *
 *     environment  `HostRequest`            → hosts of the place or provider
 *     host         `environment.claim`      → environment, which answers with the `HostTask`
 *     host         `environment.progress`, `environment.report` → environment
 *     host         `environment.seen`, `environment.exited`     → environment
 */
import type { BlueprintClaim } from '../blueprints/stored.ts'
import type { Refusal } from '../errors.ts'
import { isId, prefixes } from '../ids.ts'
import type { EnvironmentOrigin } from './events.ts'
import type {
  CreateEnvironment,
  Environment,
  EnvironmentMode,
  EnvironmentRepository,
  Holder,
  Lifetime,
  RetentionPolicy,
  StartWorker,
} from './schema.ts'

/**
 * The data from which the environment of a run, an agent or a loop is created. It is created when
 * the first job uses it. Its id is derived from the id of the owner (`boundEnvironment`).
 */
export interface EnvironmentBinding {
  readonly mode: Exclude<EnvironmentMode, 'manual'>
  /** Id of the run, agent or loop. */
  readonly owner_id: string
  readonly provider?: string
  readonly template_id?: string
  readonly runtime_version?: string
  readonly retention_policy?: RetentionPolicy
  /** Id of the principal that owns the environment. */
  readonly owned_by?: string
  /** Repositories that jobs may use, in addition to those that earlier jobs declared. */
  readonly repositories?: readonly EnvironmentRepository[]
}
/** The data in a job header about the environment of the job, in addition to the id. */
export interface JobEnvironment {
  /** The holder for which the job runs. The job waits while another holder has the lease. */
  readonly holder: Holder
  readonly binding?: EnvironmentBinding
  /** The job must not start the worker of the environment (`auto_start_worker: false`). */
  readonly passive?: true
}

export type OperationKind = 'provision' | 'start' | 'destroy'
/** A published request to hosts to claim an operation. It may be lost, repeated or late. */
export interface HostRequest {
  readonly project: string
  readonly environment_id: string
  readonly operation: number
  readonly kind: OperationKind
}
/** The work of a claimed operation, as its host receives it. */
export interface HostTask {
  readonly operation: number
  readonly kind: OperationKind
  readonly project: string
  readonly environment_id: string
  readonly name: string
  readonly provider: string
  readonly template_id?: string
  readonly runtime_version?: string
  /** Determines how long the worker waits for more jobs; `explicit` when absent. */
  readonly lifetime?: Lifetime
  readonly repositories: readonly EnvironmentRepository[]
  /**
   * Only for a start: the settings and the number (`generation`) of the worker. A worker with a
   * lower number is superseded: its credential and its registration are refused. The host stops a
   * superseded worker before it starts the new worker.
   */
  readonly worker?: StartWorker & { readonly generation: number }
}

/** Internal commands of an environment. Late, repeated and unrelated commands change nothing. */
export type EnvironmentCommands = {
  /**
   * Requests the admission of a job that is pinned to this environment. Sent by a queue. If the
   * environment does not exist or was destroyed, it is created from the binding; without a binding,
   * the job fails.
   */
  'environment.use': {
    input: JobEnvironment & {
      readonly job_id: string
      /** Id of the queue actor. */
      readonly queue: string
    }
    reply: undefined
  }
  /** Reports that a job has ended. Sent by a queue. */
  'environment.done': { input: { readonly job_id: string }; reply: undefined }
  /**
   * Reports that the run that owns the environment has ended, including its cleanup. Sent by the
   * run if it used the environment, or has received `run.environment`.
   */
  'environment.run_ended': {
    input: { readonly run_id: string; readonly status: 'completed' | 'failed' | 'cancelled' }
    reply: undefined
  }
  /**
   * Claims the requested operation. Sent by a host. `place`: the location in which the host keeps
   * environments. `token_hash`: for a start, the hash of the credential that the host created for
   * the worker. `sole`: only one process at a time can use the place, so an operation that another
   * host claimed there was interrupted. Refused with `conflict` when the operation is not current,
   * was claimed by another host (unless `sole`), or belongs to another place.
   */
  'environment.claim': {
    input: {
      readonly operation: number
      readonly host: string
      readonly place: string
      readonly isolation?: string
      readonly token_hash?: string
      readonly sole?: true
    }
    reply: HostTask
  }
  /**
   * Reports that the operation is in progress. Sent by the host of the current operation, every
   * `environmentLimits.report` milliseconds. `current` is false when the operation is no longer
   * current. The host then undoes its work.
   */
  'environment.progress': {
    input: { readonly operation: number; readonly host: string }
    reply: { readonly current: boolean }
  }
  /** Reports the outcome of the operation. Sent by its host. `error`: a readable message. */
  'environment.report': {
    input: {
      readonly operation: number
      readonly host: string
      readonly outcome: 'done' | 'failed'
      readonly error?: string
    }
    reply: undefined
  }
  /**
   * Reports whether the environment is present in the place of a host. Sent by a host when it
   * starts, and every `environmentLimits.report` milliseconds. `expected` is false when the
   * environment does not belong in this place. The host then removes the environment.
   */
  'environment.seen': {
    input: {
      readonly place: string
      readonly host: string
      readonly presence: 'present' | 'missing'
      /** Number of the running worker; absent when none runs. */
      readonly generation?: number
    }
    reply: { readonly expected: boolean }
  }
  /**
   * Reports that the process of the worker has ended. Sent by a host. `idle`: the worker exited
   * because it had no work during its keep-warm time.
   */
  'environment.exited': {
    input: {
      readonly place: string
      readonly generation: number
      readonly idle: boolean
      readonly exit_code?: number
      readonly error?: string
    }
    reply: undefined
  }
  /**
   * Reserves the environment for a worker. Sent by a gateway before the worker registers.
   * `generation`: the number of a worker that a host started. Other workers have no number, and
   * only environments of the `worker` provider accept them. Refused with
   * `environment_worker_conflict` while another worker is live. Refused with `forbidden` when the
   * worker was superseded, has ended, or is not accepted.
   */
  'environment.connect': {
    input: {
      readonly instance: string
      readonly generation?: number
    }
    reply: undefined
  }
  /** Records the session of the worker. Sent by a gateway after the worker has registered. */
  'environment.connected': {
    input: {
      readonly instance: string
      readonly session: string
      readonly generation?: number
    }
    reply: undefined
  }
  /**
   * Reports that the session of the worker has ended permanently. Sent by the actor of the worker,
   * or by a gateway when the worker could not be attached. `drained`: the worker finished its jobs
   * before it disconnected.
   */
  'environment.worker_gone': {
    input: { readonly session: string; readonly drained?: true }
    reply: undefined
  }
  /** Records in the audit log that a person opened or closed a terminal. Sent by a gateway. */
  'environment.terminal': {
    input: { readonly terminal_id: string; readonly state: 'opened' | 'closed' }
    reply: undefined
  }
  /** Destroys the environment. Sent by an executor after the project was deleted. */
  'environment.remove': { input: Readonly<Record<never, never>>; reply: undefined }
  /**
   * Creates the environment. Sent by the actor of the name, in the commit that reserves the name.
   */
  'environment.open': {
    input: {
      readonly environment: Environment
      readonly origin: EnvironmentOrigin
    } & BlueprintClaim
    reply: undefined
  }
  /**
   * Creates the environment of a run, an agent or a loop when the client gave no name. Sent by a
   * gateway. Refused with `already_exists` when the environment exists and is not destroyed.
   */
  'environment.bind': { input: EnvironmentFacts; reply: Environment }
  /**
   * Attaches the workspace of a worker, for the first time or again. Sent by the actor of the name.
   * Changes nothing while another worker is connected.
   */
  'environment.reattach': {
    input: {
      readonly session: string
      readonly instance: string
      readonly tags?: Environment['tags']
    }
    reply: undefined
  }
  wake: { input: unknown; reply: undefined }
}

/** The data that a gateway adds to a creation request. */
export interface EnvironmentFacts {
  /** The creation request, with the name, the resolved provider and the owner. */
  readonly creation: CreateEnvironment & { readonly name: string; readonly provider: string }
  /** The refusal, if the run, agent or loop of the environment does not exist or has ended. */
  readonly fault?: Refusal
}

/**
 * Commands of the actor of an environment name. The actor is in the same shard as the environments
 * with that name, and stores at most one environment for the project and one for each owner
 * (`scopeKey`).
 */
export type EnvironmentNameCommands = {
  /**
   * Stores a request with an idempotency key. Sent by a gateway to an actor whose id is derived
   * from the key, not from a name. A different request with the same key may contain another name,
   * and the actor of that name does not know the key. Only the actor of the key can therefore
   * refuse the request with `idempotency_key_conflict`.
   */
  'environment_name.key': { input: Readonly<Record<never, never>>; reply: undefined }
  /**
   * Reserves the name under another key as well. Sent by a gateway before the scope or the owner of
   * an environment changes. Refused with `already_exists` when another environment has the name
   * under that key. `reservation`: an id of the request, with which it may release the key until
   * the environment uses it or another request reserves it.
   */
  'environment_name.take': {
    input: {
      readonly name: string
      readonly key: string
      readonly environment_id: string
      readonly reservation?: string
    }
    reply: undefined
  }
  /** Releases a reserved key. Sent by a gateway after the environment refused the change. */
  'environment_name.release': {
    input: { readonly key: string; readonly environment_id: string; readonly reservation: string }
    reply: undefined
  }
  /**
   * Releases the name under all keys except `key`, or under all keys if `key` is absent. Sent by
   * the environment.
   */
  'environment_name.keep': {
    input: { readonly environment_id: string; readonly key?: string }
    reply: undefined
  }
}
/** Returns the key under which the actor of a name stores an environment. */
export const scopeKey = ({ scope, owned_by }: Pick<Environment, 'scope' | 'owned_by'>): string =>
  scope === 'owner' ? `owner/${owned_by ?? ''}` : 'project'

/** Commands of a queue about jobs that are pinned to an environment. */
export type EnvironmentQueueCommands = {
  /**
   * Admits jobs, which may then be claimed. Sent by the environment. `fence`: the number of the
   * current lease of the environment. The jobs contain this number, and a worker refuses a job
   * whose number is lower than that of an earlier job.
   */
  'queue.admit': {
    input: { readonly job_ids: readonly string[]; readonly fence: number }
    reply: undefined
  }
  /**
   * Fails jobs, except those under a lease. Sent by the environment. `error_type` is
   * `environment_worker_unavailable`, or `not_found` when the environment does not exist.
   */
  'queue.unavailable': {
    input: {
      readonly job_ids: readonly string[]
      readonly error_type: string
      readonly error_message: string
    }
    reply: undefined
  }
}

/** The reply of the actor when a lease is acquired. The gateway adds the token to the lease. */
export interface LeaseGranted {
  readonly environment: Environment
  readonly lease: NonNullable<Environment['lease']>
}
/**
 * Replies of actors that differ from those of the rows. For an environment that already existed,
 * the reply of `environment.acquire_matching` contains only the `id` and the `status_code` 200. The
 * gateway then reads the record.
 */
export interface EnvironmentReplies {
  readonly 'environment.acquire': LeaseGranted
  readonly 'environment.acquire_matching': Environment
}

/** The reply to the owner query `credential`, which authenticates the worker of an environment. */
export interface EnvironmentCredential {
  readonly environment_id: string
  readonly name: string
  readonly generation: number
}

/**
 * Whether an id belongs to an environment that this service manages. Any other text is a label that
 * a worker chose, and no actor has such an id.
 */
export const isManagedEnvironment = (id: string): boolean => isId(id, 'environment')
/**
 * Returns `use`, or undefined if the id is a label that a worker chose. Jobs with a label need no
 * admission. An id is a label if it does not have the form of an environment id and `use` has no
 * binding.
 */
export const usedEnvironment = ({
  id,
  use,
}: {
  readonly id: string
  readonly use: JobEnvironment
}): JobEnvironment | undefined => (use.binding || isManagedEnvironment(id) ? use : undefined)
/** Returns the id of the environment of a run, an agent or a loop. */
export const boundEnvironment = (owner_id: string): string =>
  `${prefixes.environment}_${owner_id.slice(owner_id.indexOf('_') + 1)}`
