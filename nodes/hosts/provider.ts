/**
 * The port of environment providers. A provider keeps workspaces somewhere, and runs the worker
 * process of each. The host (`host.ts`) translates between providers and the actors of
 * environments; a provider knows neither NATS nor actors.
 *
 * Invariants:
 * P1. Every method may be called again after a crash, and then completes what it had begun.
 * P2. At most one worker process of an environment runs: `startWorker` ends an earlier one, with
 *     all of its descendants, before it starts the next.
 * P3. After `destroy`, nothing of the environment is left: no process, folder, container or mount.
 */
import type { HostTask } from '../../protocol/environments/commands.ts'
import type { LogName } from '../../protocol/environments/schema.ts'

/** How the worker process of an environment is started. */
export interface WorkerLaunch {
  readonly generation: number
  /** Arguments of the program; absent: the stock worker, `baton environment-worker`. */
  readonly command?: readonly string[]
  /**
   * Environment variables for the worker, without its API URL and its paths, whose values only the
   * provider knows. Among them is its credential, so they must not appear in logs or in the
   * arguments of a process.
   */
  readonly variables: Readonly<Record<string, string>>
  /** URL of a gateway, as this host reaches it. */
  readonly gateway_url: string
  /** Name of the variable that holds the API URL as the worker reaches it. */
  readonly url_variable: string
  /** Name of the variable that holds the path of the workspace as the worker sees it. */
  readonly workspace_variable: string
  /** Name of the variable that holds the path of the folder for logs as the worker sees it. */
  readonly log_variable: string
  /** Hosts (`name:port`) that the worker may reach besides the gateway: those of repositories. */
  readonly allowed_hosts: readonly string[]
}
/** What a provider has of one environment. */
export interface Presence {
  readonly project: string
  readonly environment_id: string
  /** Number of the running worker; absent when none runs. */
  readonly generation?: number
}
/** The end of a worker process that no call of the provider requested. */
export interface WorkerExit {
  readonly project: string
  readonly environment_id: string
  readonly generation: number
  /** The worker ended itself because it had no work for its keep-warm time (exit code 0). */
  readonly idle: boolean
  readonly exit_code?: number
  /** A sentence for people, without secrets. */
  readonly error?: string
}
export interface LogRequest {
  readonly log_name: LogName
  /** Maximum number of lines and of bytes; the newest are returned. */
  readonly tail: number
  readonly max_bytes: number
}
/** A failure whose message people see in the record of the environment. */
export class ProviderFault extends Error {}

export interface Provider {
  /** Name of the provider, as records of environments show it. */
  readonly name: string
  /**
   * Where its environments are: a name that stays the same over restarts, and that is shared exactly
   * by hosts that reach the same environments.
   */
  readonly place: string
  /** The isolation and the resource limits that are in force, in one sentence. */
  readonly isolation: string
  /** Prepares an empty workspace. @throws ProviderFault */
  provision(task: HostTask, signal: AbortSignal): Promise<void>
  /** Starts the worker; resolves when its process runs. @throws ProviderFault */
  startWorker(task: HostTask, launch: WorkerLaunch, signal: AbortSignal): Promise<void>
  /** Removes the environment, whether or not it exists. @throws ProviderFault */
  destroy(environment_id: string): Promise<void>
  /** The end of a log; undefined when the environment is not here. */
  logs(
    environment_id: string,
    request: LogRequest,
  ): Promise<{ readonly content: string; readonly truncated: boolean } | undefined>
  /** Everything that is at the place, also what an earlier process of this host left. */
  inspect(): Promise<readonly Presence[]>
  /** Calls the listener when a worker process has ended by itself. */
  onExit(listener: (exit: WorkerExit) => void): void
  /** Ends the workers that cannot run without this process, and releases what the provider holds. */
  close(): Promise<void>
}
