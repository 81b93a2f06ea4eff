/**
 * The port of environment providers. A provider stores workspaces and runs the worker process of
 * each. The host (`host.ts`) translates between providers and the actors of environments. A
 * provider uses neither NATS nor actors.
 *
 * Invariants:
 * P1. Every method may be called again after a crash, and then completes the interrupted operation.
 * P2. At most one worker process of an environment runs: `startWorker` ends an earlier one, with
 *     all of its descendants, before it starts the next.
 * P3. After `destroy`, nothing of the environment is left: no process, folder, container or mount.
 */
import type { HostTask } from '../../protocol/environments/commands.ts'
import type { LogName } from '../../protocol/environments/schema.ts'

/** The launch parameters of an environment's worker process. */
export interface WorkerLaunch {
  readonly generation: number
  /** The command of the worker. The default is the stock worker, `baton environment-worker`. */
  readonly command?: readonly string[]
  /**
   * Environment variables for the worker. The provider adds the URL of the API and the paths. The
   * variables include the worker's credential, so they must not appear in logs or in the arguments
   * of a process.
   */
  readonly variables: Readonly<Record<string, string>>
  /** URL at which this host reaches a gateway. */
  readonly gateway_url: string
  /** Name of the variable for the URL at which the worker reaches the API. */
  readonly url_variable: string
  /** Name of the variable for the path at which the worker finds its workspace. */
  readonly workspace_variable: string
  /** Name of the variable for the path at which the worker finds the folder for its logs. */
  readonly log_variable: string
  /** Repository hosts (`name:port`) that the worker may reach in addition to the gateway. */
  readonly allowed_hosts: readonly string[]
}
/** An environment that exists at a provider. */
export interface Presence {
  readonly project: string
  readonly environment_id: string
  /** Number of the running worker; absent when no worker is running. */
  readonly generation?: number
}
/** The unexpected end of a worker process, which no call to the provider requested. */
export interface WorkerExit {
  readonly project: string
  readonly environment_id: string
  readonly generation: number
  /** Whether the worker ended because it had no work for its keep-warm time (exit code 0). */
  readonly idle: boolean
  readonly exit_code?: number
  /** A message for users, without secrets. */
  readonly error?: string
}
export interface LogRequest {
  readonly log_name: LogName
  /** Maximum number of lines. The newest lines are returned. */
  readonly tail: number
  /** Maximum number of bytes. The newest bytes are returned. */
  readonly max_bytes: number
}
/** Thrown when a provider fails. The record of the environment shows the message to users. */
export class ProviderFault extends Error {}

export interface Provider {
  /** Name of the provider, as records of environments show it. */
  readonly name: string
  /**
   * Name of the place where the environments are. It stays the same across restarts. Two hosts have
   * the same place if, and only if, they reach the same environments.
   */
  readonly place: string
  /**
   * Only one process at a time can use the place. The operations of earlier processes have then
   * ended, with the workers that they started.
   */
  readonly sole?: true
  /** The isolation and the resource limits that are in force, in one sentence. */
  readonly isolation: string
  /** Prepares an empty workspace. @throws ProviderFault on failure. */
  provision(task: HostTask, signal: AbortSignal): Promise<void>
  /** Starts the worker. Resolves when its process is running. @throws ProviderFault on failure. */
  startWorker(task: HostTask, launch: WorkerLaunch, signal: AbortSignal): Promise<void>
  /** Removes the environment. Succeeds if it does not exist. @throws ProviderFault on failure. */
  destroy(environment_id: string): Promise<void>
  /** Returns the end of a log, or undefined if the environment is not at this place. */
  logs(
    environment_id: string,
    request: LogRequest,
  ): Promise<{ readonly content: string; readonly truncated: boolean } | undefined>
  /** Returns all environments at the place, including those of earlier processes of this host. */
  inspect(): Promise<readonly Presence[]>
  /** Registers a listener that is called when a worker process ends without having been stopped. */
  onExit(listener: (exit: WorkerExit) => void): void
  /** Ends the workers that cannot run without this process, and releases all resources. */
  close(): Promise<void>
}
