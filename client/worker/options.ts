/** What a user of the worker library gives and gets. */
import type { ClaimedJob } from '../../protocol/workers/socket.ts'

/** The parameters of an action, as its step gave them. */
export type Parameters = Readonly<Record<string, unknown>>
export interface ActionContext {
  /** Fires when the job should stop: it was cancelled, its lease was lost, or the worker stops. Its reason says which. */
  readonly signal: AbortSignal
  readonly job: ClaimedJob
  /** Write a line to the worker's log, marked with the job. */
  log(line: string): void
}
/**
 * Does the work of one action. An object that is returned is the result as it is; anything else becomes `{output: value}`.
 * Throwing fails the attempt with the error's name and message.
 */
export type Action = (parameters: Parameters, context: ActionContext) => unknown

/** What became of a job on this worker. `lost`: the lease went to somebody else, so the outcome was dropped. */
export type JobEvent =
  | { readonly type: 'started'; readonly job: ClaimedJob }
  | {
      readonly type: 'completed' | 'failed' | 'cancelled' | 'lost'
      readonly job: ClaimedJob
      readonly ms: number
      readonly error?: string
    }
/**
 * `connecting`: not registered yet. `registered`: takes jobs. `reconnecting`: the connection is gone, running jobs go on.
 * `draining`: finishes what it has and takes nothing more. `ended`: see `Worker.ended`.
 */
export type WorkerState = 'connecting' | 'registered' | 'reconnecting' | 'draining' | 'ended'

export interface WorkerOptions {
  /** Base address of the service, such as `http://127.0.0.1:8080`; several are tried in turn. */
  readonly url: string | readonly string[]
  /** API key with the permission to execute work. */
  readonly key: string
  /** Handle of the project; `default` unless named. */
  readonly project?: string
  /** Identity of this process, unique among the project's live workers; made from the host name unless given. */
  readonly instance?: string
  /** Jobs that run at the same time; 1 by default. */
  readonly concurrency?: number
  /** Queues to take jobs from; all unless given. */
  readonly queues?: readonly string[]
  /** Shown in the list of workers. */
  readonly name?: string
  readonly version?: string
  /** Managed environment that this process runs in. */
  readonly environment_id?: string
  /** Handlers by action name: the names are what the worker offers to do. */
  readonly actions: Readonly<Record<string, Action>>
  readonly onState?: (state: WorkerState) => void
  readonly onJob?: (event: JobEvent) => void
  /** Gets one line for everything worth knowing; silent unless given. */
  readonly log?: (line: string) => void
}

/** Why a worker ended by itself. `code` is the service's frame code, or `refused` for an upgrade that will never be accepted. */
export class WorkerError extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.name = 'WorkerError'
    this.code = code
  }
}
/** How a worker ended. */
export type WorkerEnd =
  | { readonly reason: 'drained' | 'stopped' }
  | { readonly reason: 'failed'; readonly error: WorkerError }
