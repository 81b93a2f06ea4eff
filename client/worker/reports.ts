/**
 * Reports the outcomes of jobs until the service acknowledges them. Invariant: a report is kept
 * until it is acknowledged or permanently rejected, or the worker ends. Until then, it is sent
 * again after every registration and every 10 s, unless earlier frames still wait for a slow
 * connection. The service handles repeats idempotently.
 */
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { reportErrors, sizes, type Up } from '../../protocol/workers/socket.ts'
import type { Cancel, Clock } from './ports.ts'

export type Report = Extract<Up, { type: 'job.report' }>
type Outcome = Omit<Report, 'type' | 'message_id' | 'job_id' | 'lease_token'>

interface Pending {
  readonly job_id: string
  readonly lease_token: string
  readonly text: string
}

/** Milliseconds between repeats of all unacknowledged reports. */
const RESEND_EVERY_MS = 10_000

export class Reports {
  /** Unacknowledged reports as text, by message id. */
  readonly #pending = new Map<string, Pending>()
  readonly #send: (text: string) => void
  readonly #drained: () => boolean
  readonly #changed: () => void
  readonly #clock: Clock
  #timer: Cancel | undefined

  /**
   * @param send sends a frame; does nothing while the worker is not registered.
   * @param drained whether all frames that were sent have left the process.
   * @param changed called when no report is pending any more.
   */
  constructor(
    clock: Clock,
    send: (text: string) => void,
    drained: () => boolean,
    changed: () => void,
  ) {
    this.#clock = clock
    this.#send = send
    this.#drained = drained
    this.#changed = changed
  }
  get size(): number {
    return this.#pending.size
  }
  /** Lease tokens of the reports that are not acknowledged. */
  get leases(): readonly string[] {
    return [...this.#pending.values()].map(({ lease_token }) => lease_token)
  }

  /**
   * Reports the outcome of a lease. A report that is too large for a frame is replaced with the
   * failure `ResultTooLarge`.
   */
  add(
    { id, lease_token }: { readonly id: string; readonly lease_token: string },
    outcome: Outcome,
  ): void {
    const message_id = `msg_${this.#clock.unique()}`
    const lease = { type: 'job.report', message_id, job_id: id, lease_token } as const
    const text =
      written({ ...lease, ...outcome }) ??
      JSON.stringify({
        ...lease,
        status: 'failed',
        error_type: reportErrors.result_too_large,
        error_message: `the report is larger than ${sizes.frame} bytes`,
      })
    this.#pending.set(message_id, { job_id: id, lease_token, text })
    this.#send(text)
    this.#timer ??= this.#clock.after(RESEND_EVERY_MS, () => this.#again())
  }
  /** Sends all pending reports again, after each registration and periodically. */
  resend(): void {
    for (const { text } of this.#pending.values()) this.#send(text)
  }
  /** Handles an acknowledgement. Without a message id, it acknowledges all reports of the job. */
  acknowledged(job_id: string, message_id: string | undefined): void {
    if (message_id !== undefined && this.#pending.has(message_id)) this.#remove(message_id)
    else if (message_id === undefined)
      for (const [id, report] of this.#pending) if (report.job_id === job_id) this.#remove(id)
  }
  /** Removes a report that can never be accepted. Returns whether this report was pending. */
  hopeless(message_id: string | undefined): boolean {
    if (message_id === undefined || !this.#pending.has(message_id)) return false
    this.#remove(message_id)
    return true
  }
  /** Removes all pending reports, because the worker ends. */
  stop(): void {
    this.#timer?.()
    this.#timer = undefined
    this.#pending.clear()
  }

  #remove(message_id: string): void {
    this.#pending.delete(message_id)
    if (this.#pending.size > 0) return
    this.#timer?.()
    this.#timer = undefined
    this.#changed()
  }
  #again(): void {
    this.#timer = this.#clock.after(RESEND_EVERY_MS, () => this.#again())
    if (this.#drained()) this.resend()
  }
}

/**
 * Serializes a report. Returns undefined if it exceeds the frame limit, because sending it would
 * end the connection every time.
 */
function written(report: Report): string | undefined {
  const text = JSON.stringify(report)
  return text.length <= sizes.frame / 4 || Buffer.byteLength(text) <= sizes.frame ? text : undefined
}

/**
 * Converts a handler's value to a result: an object is used directly; an array or any other value
 * is wrapped.
 * @throws TypeError if the value cannot be serialized as JSON.
 */
export function resultOf(value: unknown): Record<string, unknown> {
  const plain: unknown = value === undefined ? null : JSON.parse(JSON.stringify(value) ?? 'null')
  return isJsonObject(plain) ? plain : { output: plain }
}
