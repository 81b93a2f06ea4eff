/** The options and types of the worker library. */
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { ArtifactReference, PublishOptions } from '../artifacts/publish.ts'
import type { JobLog } from './logs.ts'
import type { OpenTerminal } from './terminals.ts'

/** The parameters of one execution of an action. */
export type Parameters = Readonly<Record<string, unknown>>
export interface ActionContext {
  /**
   * Aborts when the job should stop, because it was cancelled, its lease was lost, or the worker
   * stops. The signal's reason identifies the cause.
   */
  readonly signal: AbortSignal
  readonly job: ClaimedJob
  /**
   * Writes lines to the log of the job's run: `log.info(text, fields)`, and `debug`, `warn`,
   * `error`. `log(line)` also writes the line to the worker's own log.
   */
  readonly log: JobLog
  /**
   * Uploads a file as an artifact of the job's run, and returns a reference for the job's result.
   * @param file path of the file, or its bytes.
   * @throws BatonError if the service refuses the upload, for example with `lease_lost`.
   * @example
   * return { report: await publish('out/report.pdf', { mime: 'application/pdf' }) }
   */
  publish(file: string | Uint8Array, options?: PublishOptions): Promise<ArtifactReference>
}
/**
 * Executes one action. A returned object becomes the result. An array or any other value becomes
 * `{output: value}`. An exception fails the attempt with the error's name and message.
 */
export type Action = (parameters: Parameters, context: ActionContext) => unknown

/**
 * The progress of a job on this worker. `lost` means that the lease was lost, or that the worker
 * ended before the job. In both cases, no outcome is reported.
 */
export type JobEvent =
  | { readonly type: 'started'; readonly job: ClaimedJob }
  | {
      readonly type: 'completed' | 'failed' | 'cancelled' | 'lost'
      readonly job: ClaimedJob
      readonly ms: number
      readonly error?: string
    }
/**
 * The state of a worker. `connecting`: not registered yet. `registered`: claims jobs.
 * `reconnecting`: the connection is lost, but running jobs continue. `draining`: finishes its
 * running jobs and claims no more. `ended`: see `Worker.ended`.
 */
export type WorkerState = 'connecting' | 'registered' | 'reconnecting' | 'draining' | 'ended'

export interface WorkerOptions {
  /**
   * Base address of the service, such as `http://127.0.0.1:8080`. If several are given, they are
   * tried in turn.
   */
  readonly url: string | readonly string[]
  /**
   * API key with the permission to execute work. Without it, or if it is empty, the worker sends no
   * credential: a service with `BATON_ANONYMOUS_WORKER` accepts such workers from its own machine.
   */
  readonly key?: string
  /** Handle of the project; `default` if absent. */
  readonly project?: string
  /**
   * Identity of this process, unique among the project's live workers; derived from the host name
   * by default.
   */
  readonly instance?: string
  /** Maximum number of concurrent jobs; 1 by default. */
  readonly concurrency?: number
  /** Queues to claim jobs from; all by default. */
  readonly queues?: readonly string[]
  /** Name shown in the list of workers. */
  readonly name?: string
  readonly version?: string
  /** Id of the managed environment that this process runs in. */
  readonly environment_id?: string
  /** Capabilities of the worker in addition to its actions, shown in lists of workers. */
  readonly capabilities?: readonly string[]
  /** Handlers by action name. The worker claims only jobs of these actions. */
  readonly actions: Readonly<Record<string, Action>>
  /**
   * Opens terminals in the worker's environment. A worker with this option should also announce the
   * capability `terminal`.
   */
  readonly terminals?: OpenTerminal
  /** Receives the number of open terminals when it changes. */
  readonly onTerminals?: (count: number) => void
  readonly onState?: (state: WorkerState) => void
  readonly onJob?: (event: JobEvent) => void
  /**
   * Sends what handlers write with `console.debug`, `log`, `info`, `warn` and `error` to the log of
   * their job. The console of the process is replaced until the worker has ended.
   */
  readonly captureConsole?: boolean
  /** Removes credentials from the lines that are sent to the logs of jobs. */
  readonly redact?: (text: string) => string
  /** Receives log lines; no log by default. */
  readonly log?: (line: string) => void
}

/**
 * The error with which a worker ended, or with which its options were rejected. `code` is the code
 * of the `error` frame that the service sent; `refused` when the service permanently rejects the
 * WebSocket upgrade, or the socket cannot be created; `invalid_options` for an address or a key
 * that cannot be used. `status` is the HTTP status of a rejected upgrade.
 */
export class WorkerError extends Error {
  readonly code: string
  readonly status: number | undefined
  constructor(code: string, message: string, status?: number) {
    super(message)
    this.name = 'WorkerError'
    this.code = code
    this.status = status
  }
}
/** The reason why a worker ended. */
export type WorkerEnd =
  | { readonly reason: 'drained' | 'stopped' }
  | { readonly reason: 'failed'; readonly error: WorkerError }
