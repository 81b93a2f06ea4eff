/**
 * Internal commands of environments, and what queues, hosts and gateways exchange with them.
 *
 * A job that is pinned to an environment waits in its queue until the environment admits it:
 *
 *     queue        `environment.use`   the job exists            → environment
 *     environment  `queue.admit`       the job may be claimed    → queue
 *     queue        `environment.done`  the job has ended         → environment
 *     environment  `queue.unavailable` no worker came: the job fails → queue
 *
 * Work of a provider (prepare, start the worker, destroy) is an OPERATION. The environment requests
 * one operation at a time and repeats the request until a host claims it; only the host that claimed
 * it may report its outcome. Requests may be lost or repeated.
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
 * How an environment that belongs to a run, an agent or a loop is created by the first job that
 * uses it. The id of the environment is derived from the id of the owner (`boundEnvironment`).
 */
export interface EnvironmentBinding {
  readonly mode: Exclude<EnvironmentMode, 'manual'>
  /** Id of the run, agent or loop. */
  readonly owner_id: string
  readonly provider?: string
  readonly template_id?: string
  readonly runtime_version?: string
  readonly retention_policy?: RetentionPolicy
  /** Principal that owns the environment: that of the agent, or the one that started the run. */
  readonly owned_by?: string
  /** Repositories that its jobs may use; added to those that earlier jobs declared. */
  readonly repositories?: readonly EnvironmentRepository[]
}
/** What a job header says about its environment, besides the id. */
export interface JobEnvironment {
  /** For whom the job uses the environment. A lease of another holder makes the job wait. */
  readonly holder: Holder
  readonly binding?: EnvironmentBinding
  /** The job must not start the worker of the environment (`auto_start_worker: false`). */
  readonly passive?: true
}

export type OperationKind = 'provision' | 'start' | 'destroy'
/** A request to hosts to claim an operation. Published; may be lost, repeated or late. */
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
  /** Decides how long the worker waits for further jobs; `explicit` when absent. */
  readonly lifetime?: Lifetime
  readonly repositories: readonly EnvironmentRepository[]
  /**
   * Of a start: how the worker is started, and its number. A worker with a lower number is
   * superseded: its credential and its registration are refused. The host ends it before it starts
   * the new one.
   */
  readonly worker?: StartWorker & { readonly generation: number }
}

/** Internal commands of an environment. Late, repeated and unrelated ones change nothing. */
export type EnvironmentCommands = {
  /**
   * From a queue: the job is pinned to this environment and waits for its admission. With a binding,
   * an environment that does not exist yet, or that was destroyed, is created. Without one, the job
   * of an environment that does not exist fails.
   */
  'environment.use': {
    input: JobEnvironment & {
      readonly job_id: string
      /** Id of the queue actor. */
      readonly queue: string
    }
    reply: undefined
  }
  /** From a queue: the job has ended. */
  'environment.done': { input: { readonly job_id: string }; reply: undefined }
  /** From a run that has ended, after its cleanup, when it used its own environment. */
  'environment.run_ended': {
    input: { readonly run_id: string; readonly status: 'completed' | 'failed' | 'cancelled' }
    reply: undefined
  }
  /**
   * From a host: claims the requested operation. `place`: where the host keeps environments.
   * `token_hash`: of the credential that the host made for the worker of a start. Refused with
   * `conflict` when the operation is not current, has another host, or belongs to another place.
   */
  'environment.claim': {
    input: {
      readonly operation: number
      readonly host: string
      readonly place: string
      readonly isolation?: string
      readonly token_hash?: string
    }
    reply: HostTask
  }
  /**
   * From the host of the current operation, every `environmentLimits.report`: it still works.
   * `current` is false when the operation is not current any more; the host then undoes it.
   */
  'environment.progress': {
    input: { readonly operation: number; readonly host: string }
    reply: { readonly current: boolean }
  }
  /** From the host of the current operation: its outcome. `error`: a sentence for people. */
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
   * From a host, every `environmentLimits.report` and when the host starts: what it has. The reply
   * says whether the environment belongs there; if not, the host removes it.
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
   * From a host: the process of the worker has ended. `idle`: it ended itself, because it had no work
   * for its keep-warm time.
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
   * From a gateway, before a worker registers for the environment: makes this worker the only one.
   * `generation`: of the credential of a worker that a host started; absent for other workers, which
   * only environments of the provider `worker` accept. Refused with `environment_worker_conflict`
   * while another worker is live, and with `forbidden` when the worker is superseded.
   */
  'environment.connect': {
    input: {
      readonly instance: string
      readonly generation?: number
    }
    reply: undefined
  }
  /** From a gateway, after the worker has registered: its session. */
  'environment.connected': {
    input: {
      readonly instance: string
      readonly session: string
      readonly generation?: number
    }
    reply: undefined
  }
  /**
   * From the actor of a worker: the session has ended permanently. `drained`: it had finished its
   * jobs and left.
   */
  'environment.worker_gone': {
    input: { readonly session: string; readonly drained?: true }
    reply: undefined
  }
  /** From a gateway: a person has opened or closed a terminal, for the audit log. */
  'environment.terminal': {
    input: { readonly terminal_id: string; readonly state: 'opened' | 'closed' }
    reply: undefined
  }
  /** From an executor, when the project was deleted: destroys the environment. */
  'environment.remove': { input: Readonly<Record<never, never>>; reply: undefined }
  /**
   * From the holder of its name, in the same commit: creates the environment, or attaches the worker
   * of an existing one again.
   */
  'environment.open': {
    input: {
      readonly environment: Environment
      readonly origin: EnvironmentOrigin
    } & BlueprintClaim
    reply: undefined
  }
  /**
   * From a gateway: creates the environment of a run, an agent or a loop for a client that gave no
   * name, unless it exists. Refused with `already_exists` when it exists and is not destroyed.
   */
  'environment.bind': { input: EnvironmentFacts; reply: Environment }
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

/** What a gateway adds to a creation. */
export interface EnvironmentFacts {
  /** The creation with its name, the resolved provider and the owner. */
  readonly creation: CreateEnvironment & { readonly name: string; readonly provider: string }
  /** Why the environment cannot be created: its run, agent or loop does not exist or has ended. */
  readonly fault?: Refusal
}

/**
 * Commands of the holder of a name. It is in the shard of its environments, and holds the name once
 * for the project and once for each owner (`scopeKey`).
 */
export type EnvironmentNameCommands = {
  /**
   * From a gateway, to the actor whose id is derived from an idempotency key instead of a name:
   * stores the request. The name is part of the request, so a different request under the same key
   * may go to another holder, and only this actor can refuse it with `idempotency_key_conflict`.
   */
  'environment_name.key': { input: Readonly<Record<never, never>>; reply: undefined }
  /**
   * From a gateway, before the scope or the owner of an environment changes: takes the name for
   * another key as well. Refused with `already_exists` when another environment has it.
   */
  'environment_name.take': {
    input: { readonly name: string; readonly key: string; readonly environment_id: string }
    reply: undefined
  }
  /** From the environment: it has the name under this key only; under none when it is absent. */
  'environment_name.keep': {
    input: { readonly environment_id: string; readonly key?: string }
    reply: undefined
  }
}
/** Returns the key under which the holder of a name stores an environment. */
export const scopeKey = ({ scope, owned_by }: Pick<Environment, 'scope' | 'owned_by'>): string =>
  scope === 'owner' ? `owner/${owned_by ?? ''}` : 'project'

/** Commands of a queue about jobs that are pinned to an environment. */
export type EnvironmentQueueCommands = {
  /**
   * From the environment: the jobs may be claimed. `fence`: the number of the current lease of the
   * environment; jobs carry it to the worker, which refuses jobs with a lower number than it has
   * seen.
   */
  'queue.admit': {
    input: { readonly job_ids: readonly string[]; readonly fence: number }
    reply: undefined
  }
  /**
   * From the environment: jobs without a lease fail. `error_type` is
   * `environment_worker_unavailable` unless the environment does not exist (`not_found`).
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

/** The reply of the actor to an acquisition; the gateway adds the token to the lease. */
export interface LeaseGranted {
  readonly environment: Environment
  readonly lease: NonNullable<Environment['lease']>
}
/**
 * Replies of actors that differ from those of the rows. An environment that already existed has only
 * its `id` and the `status_code` 200; the gateway reads the record.
 */
export interface EnvironmentReplies {
  readonly 'environment.acquire': LeaseGranted
  readonly 'environment.acquire_matching': Environment
}

/** The facts that authenticate the worker of an environment, asked of its owner. */
export interface EnvironmentCredential {
  readonly environment_id: string
  readonly name: string
  readonly generation: number
}

/**
 * Whether the id is that of an environment of this service. Any other text is a label that a worker
 * chose; nothing could be sent to an environment with such an id.
 */
export const isManagedEnvironment = (id: string): boolean => isId(id, 'environment')
/**
 * What a job in the environment says about it. Undefined for the label of a worker, for which no job
 * waits. An environment that its first job creates is never a label.
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
