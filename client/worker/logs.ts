/**
 * Sends the log lines of running jobs to the service, in batches.
 *
 * Invariants:
 * G1. Lines are sent only to a service that announced support for log frames.
 * G2. The lines of a job are sent in order, and before its report.
 * G3. The lines that are sent in one interval, or buffered while the worker is disconnected, have
 *     at most `MAX_BYTES` bytes. Further lines are dropped, and an additional line reports their
 *     number.
 */
import { inspect } from 'node:util'
import {
  LOG_FRAME,
  type LogFrame,
  type LogLevel,
  logLevels,
  logLimits,
} from '../../protocol/jobs/logs.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { Cancel, Clock } from './ports.ts'

/** Additional fields of a log line. Their values must be JSON-serializable. */
export type LogFields = Readonly<Record<string, unknown>>
/** Writes a line to the log of the job's run. */
export type WriteLine = (level: LogLevel, text: string, fields?: LogFields) => void
type LevelLog = (text: string, fields?: LogFields) => void
/**
 * Writes lines to the log of the job's run. Called as a function, it also writes the line to the
 * worker's own log, prefixed with the job id.
 * @example
 * log.info('rows imported', { count: 17 })
 */
export type JobLog = ((line: string) => void) & Readonly<Record<LogLevel, LevelLog>>

/** Milliseconds between two batches. */
const INTERVAL_MS = 100
/** Size in bytes at which a batch is sent immediately. */
const BATCH_BYTES = 32 * 1024
/** Maximum number of bytes per interval (G3). */
const MAX_BYTES = 1_048_576
/** Approximate number of bytes of a line in addition to its text and fields. */
const LINE_BYTES = 60

type Line = LogFrame['lines'][number]
interface Waiting {
  readonly job: ClaimedJob
  lines: Line[]
  bytes: number
  dropped: number
}

/**
 * Returns the log of a job.
 * @param local writes a line to the worker's own log.
 */
export function jobLog(write: WriteLine, local: (line: string) => void): JobLog {
  const log = (line: string): void => {
    const text = textOf(line)
    local(text)
    write('info', text)
  }
  const levels = Object.fromEntries(
    logLevels.map((level): [LogLevel, LevelLog] => [
      level,
      (text, fields) => write(level, textOf(text), fields),
    ]),
  ) as Record<LogLevel, LevelLog>
  return Object.assign(log, levels)
}

/** Returns a text unchanged, and describes any other value, which untyped programs may log. */
const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : inspect(value, { depth: 2 })

export interface LogsWorld {
  readonly clock: Clock
  /** Returns the current time in RFC 3339 format. */
  time(): string
  /** Removes credentials from a text. */
  redact(text: string): string
  /** Sends a frame, unless the worker is not registered. */
  send(frame: LogFrame): void
}
export class Logs {
  readonly #world: LogsWorld
  /** Lines that are not sent yet, by lease token. */
  readonly #waiting = new Map<string, Waiting>()
  /**
   * Whether the service accepts lines; undefined before the first registration, and after the loss
   * of a connection on which lines were accepted.
   */
  #accepted: boolean | undefined
  #bytes = 0
  #timer: Cancel | undefined

  constructor(world: LogsWorld) {
    this.#world = world
  }

  /**
   * Begins to send lines, after a registration.
   * @param frames the optional frame types that the service announced.
   */
  begin(frames: readonly string[] = []): void {
    this.#accepted = frames.includes(LOG_FRAME)
    this.#sendAll()
  }
  /** Buffers lines from now on, because the connection was lost. */
  lost(): void {
    if (this.#accepted) this.#accepted = undefined
  }
  add(job: ClaimedJob, level: LogLevel, text: string, fields?: LogFields): void {
    if (this.#accepted === false) return
    const waiting = this.#waitingOf(job)
    // A line that would be dropped anyway is not built, because a program can print millions.
    const line = this.#bytes + LINE_BYTES > MAX_BYTES ? undefined : this.#line(level, text, fields)
    const bytes = line ? sizeOf(line) : 0
    if (!line || this.#bytes + bytes > MAX_BYTES) waiting.dropped++
    else {
      this.#bytes += bytes
      waiting.bytes += bytes
      this.#report(waiting)
      waiting.lines.push(line)
    }
    if (this.#accepted && (waiting.bytes >= BATCH_BYTES || waiting.lines.length >= logLimits.lines))
      this.#send(waiting)
    this.#timer ??= this.#world.clock.after(INTERVAL_MS, () => this.#tick())
  }
  /** Sends the remaining lines of a job, before its report. */
  end({ lease_token }: ClaimedJob): void {
    const waiting = this.#waiting.get(lease_token)
    if (!waiting) return
    this.#report(waiting)
    this.#send(waiting)
  }
  /** Discards the buffered lines and all later ones. */
  stop(): void {
    this.#timer?.()
    this.#timer = undefined
    this.#waiting.clear()
    this.#accepted = false
  }

  #waitingOf(job: ClaimedJob): Waiting {
    const known = this.#waiting.get(job.lease_token)
    if (known) return known
    const made: Waiting = { job, lines: [], bytes: 0, dropped: 0 }
    this.#waiting.set(job.lease_token, made)
    return made
  }
  /** Creates a line. Long texts are shortened here, because the service truncates them anyway. */
  #line(level: LogLevel, text: string, fields: LogFields | undefined): Line {
    const { redact, time } = this.#world
    const line = { at: time(), level, text: redact(text).slice(0, 2 * logLimits.text) }
    return fields === undefined || fields === null
      ? line
      : { ...line, fields: plain(fields, redact) }
  }
  #report(waiting: Waiting): void {
    const { dropped } = waiting
    if (dropped === 0) return
    waiting.dropped = 0
    const text = `The worker dropped ${dropped} ${dropped === 1 ? 'line' : 'lines'}.`
    waiting.lines.push({ at: this.#world.time(), level: 'warn', text, fields: { dropped } })
  }
  #tick(): void {
    this.#timer = undefined
    // While the worker is disconnected, its lines remain buffered and count towards `MAX_BYTES`.
    if (this.#accepted !== undefined) this.#sendAll()
  }
  #sendAll(): void {
    for (const waiting of [...this.#waiting.values()]) {
      this.#report(waiting)
      this.#send(waiting)
    }
    if (this.#accepted === undefined) return
    this.#waiting.clear()
    this.#bytes = 0
  }
  #send(waiting: Waiting): void {
    if (!this.#accepted) return
    const { id, lease_token } = waiting.job
    for (let from = 0; from < waiting.lines.length; from += logLimits.lines)
      this.#world.send({
        type: LOG_FRAME,
        job_id: id,
        lease_token,
        lines: waiting.lines.slice(from, from + logLimits.lines),
      })
    waiting.lines = []
    waiting.bytes = 0
  }
}

/** Returns the approximate number of bytes of a line. */
const sizeOf = ({ text, fields }: Line): number =>
  LINE_BYTES + Buffer.byteLength(text) + (fields ? JSON.stringify(fields).length : 0)

/**
 * Returns the fields as a JSON object without credentials, or an object with the error if they
 * cannot be serialized.
 */
function plain(fields: LogFields, redact: (text: string) => string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(redact(JSON.stringify(fields)))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : { value }
  } catch (error) {
    return { invalid_fields: String(error) }
  }
}
