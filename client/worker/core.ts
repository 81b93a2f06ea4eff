/**
 * The core of a worker: registers the worker, and handles each frame. All access to clock and
 * sockets goes through ports.
 *
 * Invariants:
 * W1. Registration is the first frame of every connection. No other frame is sent before its
 *     response.
 * W2. Running jobs, their leases and unacknowledged reports survive a lost connection: with the
 *     session token, the worker keeps its identity on the next connection.
 * W3. `ended` resolves once, and afterwards no timer and no socket is active.
 */
import { LOG_FRAME } from '../../protocol/jobs/logs.ts'
import { type ClaimedJob, type Down, reportErrors, type Up } from '../../protocol/workers/socket.ts'
import type { Publish } from '../artifacts/publish.ts'
import { Claims } from './claims.ts'
import { type ConsoleCapture, captureConsole } from './console.ts'
import { Jobs } from './jobs.ts'
import { Logs } from './logs.ts'
import {
  type JobEvent,
  type WorkerEnd,
  WorkerError,
  type WorkerOptions,
  type WorkerState,
} from './options.ts'
import type { Cancel, Clock, Dial } from './ports.ts'
import { fatalAdvice, permanentErrors, readFrame } from './read.ts'
import { ReconnectingSocket } from './reconnecting-socket.ts'
import { Reports } from './reports.ts'
import { Terminals } from './terminals.ts'

/**
 * Timing in milliseconds. `register` is the timeout of a registration, `stop` the maximum duration
 * of a stop, `handlers` the time after which a stop reports the unfinished jobs as cancelled, and
 * `draining` the timeout of the drain acknowledgement.
 */
const coreTiming = { register: 30_000, stop: 5000, handlers: 3500, draining: 3000 } as const
export interface Ports {
  readonly clock: Clock
  readonly dial: Dial
}
export type CoreOptions = Omit<WorkerOptions, 'url' | 'key' | 'project'> & {
  readonly instance: string
  readonly urls: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly publish: Publish
}
/** Maximum number of leases that a registration lists. A worker with more leases lists none. */
const MAX_LEASES = 10_000
export class Core {
  readonly ended: Promise<WorkerEnd>
  readonly #options: CoreOptions
  readonly #clock: Clock
  readonly #line: ReconnectingSocket
  readonly #claims: Claims
  readonly #jobs: Jobs
  readonly #reports: Reports
  readonly #terminals: Terminals
  readonly #logs: Logs
  readonly #console: ConsoleCapture | undefined
  readonly #concurrency: number
  #state: WorkerState | 'idle' = 'idle'
  #registered = false
  #token: string | undefined
  #leaving: 'drained' | 'stopped' | undefined
  /**
   * Whether no further jobs are expected, because the service has acknowledged the drain or the
   * acknowledgement has timed out.
   */
  #barred = false
  #end!: (end: WorkerEnd) => void
  readonly #timers: Cancel[] = []
  #registering: Cancel = () => {}
  readonly #onRegistered: (() => void)[] = []

  constructor(options: CoreOptions, { clock, dial }: Ports) {
    this.#options = options
    this.#clock = clock
    this.#concurrency = options.concurrency ?? 1
    this.ended = new Promise((end) => (this.#end = end))
    const log = (line: string) => this.#log(line)
    this.#line = new ReconnectingSocket(
      options.urls,
      options.headers,
      dial,
      clock,
      {
        opened: () => this.#register(),
        frame: (text) => this.#frame(text),
        lost: () => this.#lost(),
        refused: (error) => this.#finish({ reason: 'failed', error }),
      },
      log,
    )
    this.#reports = new Reports(
      clock,
      (text) => {
        if (this.#registered) this.#line.send(text)
      },
      () => this.#line.drained,
      () => this.#leave(),
    )
    this.#terminals = new Terminals(
      options.terminals,
      (frame) => void this.#send(frame),
      (count) => this.#hook(() => this.#options.onTerminals?.(count)),
    )
    this.#claims = new Claims({
      clock,
      slots: () => (this.#registered && !this.#leaving ? this.#jobs.free : 0),
      send: (message_id, available_slots) =>
        void this.#send({ type: 'jobs.claim', message_id, available_slots }),
      giveUp: () => this.#line.drop('no reply to a claim'),
    })
    this.#logs = new Logs({
      clock,
      time: () => new Date().toISOString(),
      redact: options.redact ?? ((text) => text),
      send: (frame) => void this.#send(frame),
    })
    this.#console = options.captureConsole ? captureConsole() : undefined
    this.#jobs = new Jobs({
      clock,
      actions: options.actions,
      publish: options.publish,
      concurrency: this.#concurrency,
      log,
      logs: this.#logs,
      ...(this.#console && { console: this.#console }),
      beat: ({ id, lease_token }) => {
        const message_id = this.#id()
        return this.#send({ type: 'job.heartbeat', message_id, job_id: id, lease_token })
          ? message_id
          : undefined
      },
      report: (job, outcome) => this.#reports.add(job, outcome),
      freed: () => {
        this.#claims.want()
        this.#leave()
      },
      onJobEvent: (event) => this.#callOnJob(event),
    })
  }

  /** Connects. Resolves after the first registration. Rejects if the worker ends before that. */
  start(): Promise<void> {
    if (this.#state !== 'idle')
      return Promise.reject(new Error('A worker can be started only once.'))
    this.#setState('connecting')
    this.#line.dial()
    return new Promise((done, failed) => {
      this.#onRegistered.push(done)
      void this.ended.then((end) =>
        failed(
          end.reason === 'failed'
            ? end.error
            : new Error(`The worker was ${end.reason} before it registered.`),
        ),
      )
    })
  }
  /** Claims no more jobs, finishes and reports the running ones, then ends. */
  drain(): Promise<WorkerEnd> {
    this.#retire('drained')
    this.#leave()
    return this.ended
  }
  /** Signals running jobs to stop, returns them to their queues, and ends within 5 s. */
  stop(): Promise<WorkerEnd> {
    if (this.#state === 'ended' || this.#leaving === 'stopped') return this.ended
    this.#retire('stopped')
    this.#jobs.abortAll('the worker is stopping')
    this.#timers.push(
      this.#clock.after(coreTiming.handlers, () => this.#jobs.abandon()),
      this.#clock.after(coreTiming.stop, () => this.#finish({ reason: 'stopped' })),
    )
    this.#leave()
    return this.ended
  }
  /** Ends immediately without reports, so the leases of running jobs expire. */
  abandon(): void {
    this.#finish({ reason: 'stopped' })
  }
  #retire(reason: 'drained' | 'stopped'): void {
    if (this.#state === 'ended') return
    const first = this.#leaving === undefined
    if (first || reason === 'stopped') this.#leaving = reason
    if (!first) return
    this.#setState('draining')
    this.#claims.end()
    this.#announce()
  }
  /**
   * Announces that the worker is draining. The acknowledgement is a barrier: no job arrives after
   * it.
   */
  #announce(): void {
    this.#barred = false
    if (!this.#registered) return
    this.#send({ type: 'worker.draining', message_id: this.#id() })
    this.#timers.push(this.#clock.after(coreTiming.draining, () => this.#bar()))
  }
  #bar(): void {
    this.#barred = true
    this.#leave()
  }

  #register(): void {
    const { instance, name, version, environment_id, queues, capabilities, actions } = this.#options
    this.#registering = this.#clock.after(coreTiming.register, () =>
      this.#line.drop('no reply to the registration'),
    )
    const frame: Up = {
      type: 'worker.register',
      message_id: this.#id(),
      worker_instance_id: instance,
      concurrency_limit: this.#concurrency,
      available_slots: this.#jobs.free,
      action_names: Object.keys(actions),
      frames: [LOG_FRAME],
      ...(this.#token !== undefined && { worker_session_token: this.#token, ...this.#held() }),
      ...(queues && { queues: [...queues] }),
      ...(capabilities && { capabilities: [...capabilities] }),
      ...(name !== undefined && { name }),
      ...(version !== undefined && { version }),
      ...(environment_id !== undefined && { environment_id }),
    }
    this.#line.send(JSON.stringify(frame))
  }
  /**
   * Returns the leases that this worker holds. If the session has other leases, this worker never
   * received them, and the service returns their jobs to the queues.
   */
  #held(): { leases?: string[] } {
    const leases = [...new Set([...this.#jobs.leases, ...this.#reports.leases])]
    return leases.length <= MAX_LEASES ? { leases } : {}
  }
  #frame(text: string): void {
    const frame = readFrame(text)
    if (!frame) return void this.#log(`invalid frame: ${text.slice(0, 200)}`)
    if (frame.type === 'error') this.#error(frame)
    else if (frame.type === 'worker.registered') this.#enter(frame)
    else if (this.#registered) this.#handle(frame)
  }
  #handle(frame: Exclude<Down, { type: 'error' | 'worker.registered' }>): void {
    switch (frame.type) {
      case 'jobs.claimed':
        this.#claimed(frame)
        break
      case 'work.available':
        this.#claims.want()
        break
      case 'job.heartbeat.ack':
        this.#jobs.answered(
          frame.cancel?.job_id ?? frame.job_id,
          frame.message_id,
          frame.cancel
            ? (frame.cancel.reason ?? 'cancelled')
            : frame.directives?.should_cancel
              ? 'cancelled'
              : undefined,
        )
        break
      case 'job.report.ack':
        this.#reports.acknowledged(frame.job_id, frame.message_id)
        break
      case 'job.cancel':
        this.#jobs.cancel(frame.job_id, frame.reason ?? 'cancelled')
        break
      case 'worker.draining.ack':
        this.#bar()
        break
      case 'worker.drain':
        this.#log('the service requested this worker to drain')
        void this.drain()
        break
      case 'terminal.open':
      case 'terminal.input':
      case 'terminal.resize':
      case 'terminal.ack':
      case 'terminal.close':
        this.#terminals.handle(frame)
    }
  }
  #enter({
    worker_session_token,
    lease,
    frames,
  }: Extract<Down, { type: 'worker.registered' }>): void {
    if (this.#registered) return
    this.#registering()
    const same = this.#token === worker_session_token
    this.#token = worker_session_token
    this.#registered = true
    this.#line.registered()
    this.#logs.begin(frames)
    this.#reports.resend()
    this.#jobs.beatAll()
    if (this.#leaving) this.#announce()
    else {
      this.#setState('registered')
      this.#claims.begin(lease.heartbeat_cadence_seconds, same)
    }
    for (const done of this.#onRegistered.splice(0)) done()
    this.#leave()
  }
  #claimed({ jobs, message_id }: Extract<Down, { type: 'jobs.claimed' }>): void {
    this.#claims.answered(message_id)
    for (const job of jobs) this.#take(job)
    if (jobs.length > 0) this.#claims.want()
  }
  #take(job: ClaimedJob): void {
    if (this.#leaving)
      this.#reports.add(job, {
        status: 'cancelled',
        error_type: reportErrors.cancelled,
        error_message: 'the worker accepts no more jobs',
      })
    else this.#jobs.take(job)
  }
  #error({ error, message_id }: Extract<Down, { type: 'error' }>): void {
    const { code, message } = error
    const advice = fatalAdvice(code, message, this.#token === undefined)
    if (advice !== undefined)
      return void this.#finish({ reason: 'failed', error: new WorkerError(code, advice) })
    if (!this.#registered || code === 'not_registered')
      return void this.#line.drop(`${code}: ${message}`)
    this.#log(`${code}: ${message}`)
    if (permanentErrors.has(code) && this.#reports.hopeless(message_id)) return
    if (message_id !== undefined) this.#claims.answered(message_id)
  }

  #lost(): void {
    this.#registering()
    this.#registered = false
    this.#claims.end()
    this.#terminals.closeAll()
    this.#logs.lost()
    if (!this.#leaving) this.#setState('reconnecting')
    this.#leave()
  }
  /** Ends a draining or stopping worker as soon as it has no work left. */
  #leave(): void {
    if (
      this.#leaving &&
      this.#jobs.size === 0 &&
      this.#reports.size === 0 &&
      (this.#barred || !this.#registered)
    )
      this.#finish({ reason: this.#leaving })
  }
  #finish(end: WorkerEnd): void {
    if (this.#state === 'ended') return
    this.#leaving ??= 'stopped'
    this.#registered = false
    this.#registering()
    for (const cancel of this.#timers) cancel()
    this.#claims.end()
    this.#terminals.closeAll()
    this.#jobs.loseAll(end.reason === 'failed' ? end.error.message : 'the worker is stopping')
    this.#reports.stop()
    this.#logs.stop()
    this.#console?.stop()
    this.#line.close(1000)
    this.#setState('ended')
    this.#end(end)
  }

  #send(frame: Up): boolean {
    return this.#registered && this.#line.send(JSON.stringify(frame))
  }
  #id = (): string => `msg_${this.#clock.unique()}`
  #log(line: string): void {
    this.#hook(() => this.#options.log?.(line))
  }
  #setState(state: WorkerState): void {
    if (this.#state === state) return
    this.#state = state
    this.#hook(() => this.#options.onState?.(state))
  }
  #callOnJob(event: JobEvent): void {
    this.#hook(() => this.#options.onJob?.(event))
  }
  /**
   * Calls a user's hook. An exception in the hook must not disturb the worker, so it is rethrown in
   * a microtask, as an uncaught exception.
   */
  #hook(run: () => void): void {
    try {
      run()
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
}
