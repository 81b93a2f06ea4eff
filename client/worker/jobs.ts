/**
 * Runs the jobs that this worker receives, one per lease.
 *
 * Invariants:
 * J1. Each lease has exactly one report, unless the lease is lost or the worker ends before that.
 * J2. A slot is occupied until its handler has returned, even if the handler ignores the stop
 *     signal.
 * J3. The report of a job that was signaled to stop has the status `cancelled`, whatever its
 *     handler returns.
 */
import { inspect } from 'node:util'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { type ClaimedJob, reportErrors } from '../../protocol/workers/socket.ts'
import type { Publish } from '../artifacts/publish.ts'
import type { ConsoleCapture } from './console.ts'
import { jobLog, type Logs, type WriteLine } from './logs.ts'
import type { Action, ActionContext, JobEvent, Parameters } from './options.ts'
import type { Cancel, Clock } from './ports.ts'
import { type Report, resultOf } from './reports.ts'

type Outcome = Omit<Report, 'type' | 'message_id' | 'job_id' | 'lease_token'>
export interface JobsWorld {
  readonly clock: Clock
  readonly actions: Readonly<Record<string, Action>>
  readonly concurrency: number
  /** Sends a heartbeat and returns its message id; undefined if the worker is not registered. */
  beat(job: ClaimedJob): string | undefined
  report(job: ClaimedJob, outcome: Outcome): void
  /** Called when a handler has returned and its slot is free. */
  freed(): void
  onJobEvent(event: JobEvent): void
  readonly publish: Publish
  readonly logs: Pick<Logs, 'add' | 'end'>
  /** Absent if the console is not captured. */
  readonly console?: ConsoleCapture
  log(line: string): void
}
/** Maximum number of ended leases that are remembered. */
const MAX_ENDED = 1000

interface Running {
  readonly job: ClaimedJob
  readonly stop: AbortController
  readonly since: number
  /** Message id of the latest heartbeat. */
  beat: string | undefined
  /** Whether the outcome was reported or the lease is lost. In both cases, no report follows. */
  settled: boolean
  heartbeat: Cancel
}

export class Jobs {
  readonly #world: JobsWorld
  /** Running jobs by lease token. */
  readonly #running = new Map<string, Running>()
  /** Lease tokens of the jobs that ended last. */
  readonly #ended = new Set<string>()
  constructor(world: JobsWorld) {
    this.#world = world
  }
  get size(): number {
    return this.#running.size
  }
  /** Lease tokens of the running jobs. */
  get leases(): readonly string[] {
    return [...this.#running.keys()]
  }
  /**
   * Number of free slots. A worker without actions has none: the service would assign it the jobs
   * of all actions.
   */
  get free(): number {
    const { actions, concurrency } = this.#world
    const slots = Object.keys(actions).length === 0 ? 0 : concurrency
    return Math.max(0, slots - this.#running.size)
  }

  /**
   * Starts an assigned job. Ignores a lease whose job is running or has run here, because the
   * service may repeat an assignment. Reports a failure if no slot is free or the action is unknown.
   */
  take(job: ClaimedJob): void {
    const { actions, clock } = this.#world
    if (this.#running.has(job.lease_token) || this.#ended.has(job.lease_token)) return
    for (const older of this.#of(job.id)) this.#lose(older, 'the job was reassigned')
    if (this.free === 0)
      return void this.#world.report(job, {
        status: 'failed',
        error_type: reportErrors.over_capacity,
        error_message: `all ${this.#world.concurrency} slots are in use`,
      })
    const name = job.action_name ?? String(job.spec['action_name'] ?? '')
    const action = Object.hasOwn(actions, name) ? actions[name] : undefined
    if (!action)
      return void this.#world.report(job, {
        status: 'failed',
        error_type: 'UnknownAction',
        error_message: `this worker has no action ${JSON.stringify(name)}`,
      })
    const running: Running = {
      job,
      stop: new AbortController(),
      since: clock.now(),
      beat: undefined,
      settled: false,
      heartbeat: () => {},
    }
    this.#running.set(job.lease_token, running)
    this.#beatLater(running)
    this.#world.onJobEvent({ type: 'started', job })
    void this.#run(running, action)
  }
  /** Signals a job to stop at the service's request. */
  cancel(job_id: string, reason: string): void {
    for (const running of this.#of(job_id)) this.#abort(running, reason)
  }
  /**
   * Handles the response to a heartbeat.
   * @param stop the reason to stop the job, if the service requests it.
   */
  answered(job_id: string, message_id: string | undefined, stop: string | undefined): void {
    if (stop === undefined) return
    const mine = this.#of(job_id)
    const concerned = mine.find(({ beat }) => beat !== undefined && beat === message_id)
    for (const running of concerned ? [concerned] : message_id === undefined ? mine : []) {
      if (stop === 'lease_lost') this.#lose(running, stop)
      else this.#abort(running, stop)
    }
  }
  /** Renews every lease now; called after each registration. */
  beatAll(): void {
    for (const running of this.#running.values()) if (!running.settled) this.#beat(running)
  }
  /** Signals every job to stop. Their outcomes are still reported. */
  abortAll(reason: string): void {
    for (const running of [...this.#running.values()]) this.#abort(running, reason)
  }
  /** Signals every job to stop, without reporting their outcomes. */
  loseAll(reason: string): void {
    for (const running of [...this.#running.values()]) this.#lose(running, reason)
  }
  /** Reports the remaining jobs as cancelled, without waiting for their handlers. */
  abandon(): void {
    for (const running of [...this.#running.values()])
      this.#settle(running, {
        status: 'cancelled',
        error_type: reportErrors.cancelled,
        error_message: 'the worker stopped before its handler finished',
      })
  }

  async #run(running: Running, action: Action): Promise<void> {
    const { job, stop } = running
    const given = job.spec['parameters']
    const parameters: Parameters = isJsonObject(given) ? given : {}
    const { logs, console } = this.#world
    // A handler may still write lines after its lease has ended. They are dropped.
    const write: WriteLine = (level, text, fields) => {
      if (!running.settled) logs.add(job, level, text, fields)
    }
    const context: ActionContext = {
      signal: stop.signal,
      job,
      log: jobLog(write, (line) => this.#world.log(`${job.id}: ${line}`)),
      publish: (file, options) =>
        this.#world.publish(job.lease_token, file, { ...options, signal: stop.signal }),
    }
    const call = () => action(parameters, context)
    let outcome: Outcome
    try {
      const result = await (console ? console.run(write, call) : call())
      outcome = { status: 'completed', result: resultOf(result) }
    } catch (error) {
      outcome = { status: 'failed', ...faultOf(error) }
    }
    if (stop.signal.aborted)
      outcome = {
        status: 'cancelled',
        error_type: reportErrors.cancelled,
        error_message: (stop.signal.reason as Error).message,
      }
    this.#settle(running, outcome)
    this.#running.delete(job.lease_token)
    this.#ended.add(job.lease_token)
    if (this.#ended.size > MAX_ENDED)
      this.#ended.delete(this.#ended.values().next().value as string)
    this.#world.freed()
  }
  #settle(running: Running, outcome: Outcome): void {
    if (running.settled) return
    running.settled = true
    running.heartbeat()
    this.#world.logs.end(running.job)
    this.#world.report(running.job, outcome)
    const { error_message: error } = outcome
    this.#world.onJobEvent({
      type: outcome.status ?? 'completed',
      job: running.job,
      ms: this.#world.clock.now() - running.since,
      ...(error !== undefined && { error }),
    })
  }
  #lose(running: Running, reason: string): void {
    if (!running.settled) {
      running.settled = true
      running.heartbeat()
      this.#world.onJobEvent({
        type: 'lost',
        job: running.job,
        ms: this.#world.clock.now() - running.since,
        error: reason,
      })
    }
    this.#abort(running, reason)
  }
  #abort({ stop }: Running, reason: string): void {
    if (!stop.signal.aborted) stop.abort(Object.assign(new Error(reason), { name: 'AbortError' }))
  }
  #beatLater(running: Running): void {
    running.heartbeat = this.#world.clock.after(
      running.job.heartbeat_cadence_seconds * 1000,
      () => {
        this.#beat(running)
        this.#beatLater(running)
      },
    )
  }
  #beat(running: Running): void {
    running.beat = this.#world.beat(running.job) ?? running.beat
  }
  #of = (job_id: string): Running[] =>
    [...this.#running.values()].filter(({ job }) => job.id === job_id)
}

/**
 * Returns the message of an error. Errors without one are described by the errors that they contain,
 * by their code or by their cause: Node.js reports a host with several addresses that does not
 * respond as an `AggregateError` without a message.
 */
function messageOf(error: Error): unknown {
  if (error.message) return error.message
  const { errors, code } = error as { readonly errors?: unknown; readonly code?: unknown }
  const parts = Array.isArray(errors) ? errors.filter((one) => one instanceof Error) : []
  const text = [...new Set(parts.map(({ message }) => message))].filter(Boolean).join('; ')
  const { cause } = error
  return text || code || (cause instanceof Error ? cause.message : '')
}

/** Maximum length of an error message in characters. The service shortens it further. */
const MAX_MESSAGE_LENGTH = 100_000
/**
 * Describes a handler's error. Handlers may throw any value, even one that throws when it is
 * inspected.
 */
function faultOf(error: unknown): { error_type: string; error_message: string } {
  try {
    if (error instanceof Error)
      return {
        error_type: String(error.name || 'Error').slice(0, MAX_MESSAGE_LENGTH),
        error_message: String(messageOf(error)).slice(0, MAX_MESSAGE_LENGTH),
      }
    const text = typeof error === 'string' ? error : inspect(error, { depth: 2 })
    return { error_type: 'Error', error_message: text.slice(0, MAX_MESSAGE_LENGTH) }
  } catch {
    return { error_type: 'Error', error_message: 'the handler threw a value that cannot be read' }
  }
}
