/**
 * Stores the log lines of jobs whose workers are connected to this gateway.
 *
 * Invariants:
 * L1. Lines are stored only under a current lease. The queue confirms the lease before the first
 *     line, and again when the last confirmation is one heartbeat interval old. A lease lasts for
 *     at least three intervals, so it cannot be superseded between two confirmations.
 * L2. The lines of one lease are stored in the order of their arrival: one batch is in flight, and
 *     the lines that arrive meanwhile form the next batch.
 * L3. Memory per lease is bounded. Lines above the limits are dropped, and a stored line reports
 *     their number.
 */
import { timestamp } from '../../protocol/common.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { type LogFrame, type LogLine, logLimits } from '../../protocol/jobs/logs.ts'
import type { AddressOf } from '../../protocol/queries/owners.ts'
import type { World } from '../ports.ts'
import { redactionOf } from '../queries/redact.ts'
import { storedLine } from './lines.ts'
import type { LogStore } from './ports.ts'

/** The lease of a job that a worker session holds, with the queue that granted the lease. */
export interface LogLease {
  readonly project: string
  readonly queue: AddressOf<'queue'>
  readonly job_id: string
  readonly lease_token: string
  /** Id of the worker session. */
  readonly session: string
}
/** The writers of a gateway, one for each lease under which lines arrive. */
export interface LogWriters {
  /** Whether lines can be stored. */
  readonly available: boolean
  /**
   * Stores lines.
   * @param lost called when the lease is no longer current. The lines are then discarded.
   */
  write(lease: LogLease, lines: LogFrame['lines'], lost: () => void): void
  /**
   * Stores the remaining lines of an attempt that ends, or of all attempts of the job if the token
   * is absent. Returns undefined if the lease of these lines is already confirmed. Otherwise it must
   * stay current until the promise has resolved, because the lines would be discarded.
   */
  end(job_id: string, lease_token?: string): Promise<unknown> | undefined
  /** Stops the writers. Resolves when each received line has been stored or discarded. */
  stop(): Promise<void>
}
type Ports = Pick<World, 'ask' | 'now' | 'monotonic' | 'later' | 'log' | 'settings'> & {
  readonly logs?: LogStore
}

/** Default limits per attempt of a job: lines per second (`rate`), and total size (`bytes`). */
export const jobLogLimits = { rate: 1000, bytes: 16 * 1_048_576 } as const
/** Maximum burst, in seconds: at most `rate` × `BURST_S` lines may arrive at once. */
const BURST_S = 10
/** Time without a line after which a writer is removed, in milliseconds. */
const IDLE_TIMEOUT_MS = 300_000

/** Creates the writers of a gateway. Without a log store, they discard all lines. */
export function openLogWriters(world: Ports): LogWriters {
  const { logs: store } = world
  const writers = new Map<string, Writer[]>()
  const all = () => [...writers.values()].flat()
  const remove = (writer: Writer): void => {
    const { job_id } = writer.lease
    const left = writers.get(job_id)?.filter((other) => other !== writer) ?? []
    if (left.length > 0) writers.set(job_id, left)
    else writers.delete(job_id)
  }
  const watch = (writer: Writer): void => {
    writer.forget = world.later(IDLE_TIMEOUT_MS, () => {
      if (world.monotonic() - writer.touched < IDLE_TIMEOUT_MS) watch(writer)
      else void writer.end().then(() => remove(writer))
    })
  }
  return {
    available: store !== undefined,
    write(lease, lines, lost) {
      if (!store) return
      const { job_id, lease_token } = lease
      const known = writers.get(job_id) ?? []
      let writer = known.find((one) => one.lease.lease_token === lease_token)
      if (!writer) {
        const made: Writer = new Writer(world, store, lease, () => {
          made.forget()
          remove(made)
          lost()
        })
        writer = made
        writers.set(job_id, [...known, made])
        watch(made)
      }
      writer.add(lines)
    },
    end(job_id, lease_token) {
      let confirmed: Promise<unknown> | undefined
      for (const writer of writers.get(job_id) ?? [])
        if (lease_token === undefined || writer.lease.lease_token === lease_token) {
          writer.forget()
          void writer.end().then(() => remove(writer))
          const own = writer.close()
          if (own) confirmed = confirmed ? Promise.all([confirmed, own]) : own
        }
      return confirmed
    },
    async stop() {
      for (const writer of all()) writer.forget()
      await Promise.all(all().map((writer) => writer.end()))
    },
  }
}

interface Confirmed {
  readonly target: string
  readonly attempt: number
  readonly step_key?: string
  readonly worker_instance_id: string
}
const sizeOf = (line: LogLine): number => Buffer.byteLength(JSON.stringify(line))

class Writer {
  readonly lease: LogLease
  /** Time of the last line (`World.monotonic`). */
  touched = 0
  /** Cancels the timer that removes a silent writer. */
  forget: () => void = () => {}
  readonly #world: Ports
  readonly #store: LogStore
  readonly #lost: () => void
  readonly #mask: (text: string) => string
  #waiting: { readonly line: LogLine; readonly bytes: number }[] = []
  #waitingBytes = 0
  #confirmed: Confirmed | undefined
  #confirmedAt = Number.NEGATIVE_INFINITY
  /** The confirmation that the queue has not answered yet. */
  #confirming: Promise<Confirmed | undefined> | undefined
  /** Whether the last confirmation applies to all waiting lines, because no line follows. */
  #closed = false
  #credit: number
  #credited: number
  /** Number of bytes that may still be written under the lease. */
  #left: number
  /** Number of dropped lines that no stored line has reported yet. */
  #dropped = 0
  #full = false
  #over = false
  #storing: Promise<void> | undefined

  constructor(world: Ports, store: LogStore, lease: LogLease, lost: () => void) {
    const { rate, bytes } = world.settings.job_logs ?? jobLogLimits
    const redact = redactionOf(world.settings.key_prefix)
    this.#world = world
    this.#store = store
    this.lease = lease
    this.#lost = lost
    this.#mask = (text) => redact(text.replaceAll(lease.lease_token, '[redacted]'))
    this.#credit = rate * BURST_S
    this.#credited = world.monotonic()
    this.#left = bytes
  }

  add(lines: LogFrame['lines']): void {
    const now = this.#world.now()
    const elapsed = this.#world.monotonic()
    this.touched = elapsed
    this.#closed = false
    for (const raw of lines) {
      if (this.#full || !this.#paid(elapsed)) {
        this.#dropped++
        continue
      }
      const line = storedLine(raw, now, this.#mask)
      const bytes = sizeOf(line)
      if (bytes > this.#left) {
        this.#full = true
        this.#note('The log of this job has reached its maximum size. Further lines are dropped.')
        this.#dropped++
      } else if (this.#waitingBytes + bytes > logLimits.waiting) this.#dropped++
      else {
        this.#left -= bytes
        this.#report()
        this.#push(line, bytes)
      }
    }
    void this.#flush()
  }
  /** Reports the dropped lines. Resolves when each line has been stored or discarded. */
  end(): Promise<void> {
    this.#report()
    return this.#flush()
  }
  /**
   * Confirms the lease of the waiting lines for the last time. Returns undefined if it is already
   * confirmed.
   */
  close(): Promise<unknown> | undefined {
    if (this.#waiting.length === 0 || this.#over) return undefined
    const confirmed = this.#confirm()
    if (!(confirmed instanceof Promise)) {
      this.#closed = true
      return undefined
    }
    return confirmed.then((one) => {
      this.#closed = one !== undefined
    })
  }

  /** @param now current time (`World.monotonic`). */
  #paid(now: number): boolean {
    const { rate } = this.#world.settings.job_logs ?? jobLogLimits
    this.#credit = Math.min(rate * BURST_S, this.#credit + ((now - this.#credited) / 1000) * rate)
    this.#credited = now
    if (this.#credit < 1) return false
    this.#credit--
    return true
  }
  #report(): void {
    if (this.#dropped === 0) return
    const dropped = this.#dropped
    this.#dropped = 0
    this.#note(`${dropped} ${dropped === 1 ? 'line was' : 'lines were'} dropped.`, dropped)
  }
  #note(text: string, dropped?: number): void {
    const at = timestamp(this.#world.now())
    const fields = dropped === undefined ? undefined : { dropped }
    const line: LogLine = { at, level: 'warn', text, ...(fields && { fields }) }
    this.#push(line, sizeOf(line))
  }
  #push(line: LogLine, bytes: number): void {
    this.#waiting.push({ line, bytes })
    this.#waitingBytes += bytes
  }

  #flush(): Promise<void> {
    if (this.#waiting.length > 0 && !this.#over) this.#storing ??= this.#run()
    return this.#storing ?? Promise.resolve()
  }
  async #run(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#over) {
      const confirmed = await this.#confirm()
      if (!confirmed) break
      const { target, ...about } = confirmed
      const lines = this.#take()
      const batch = { job_id: this.lease.job_id, ...about, lines }
      await this.#store.append(this.lease.project, target, batch).catch((err: unknown) => {
        this.#dropped += lines.length
        this.#world.log.debug(
          { event: 'job_log_store_failed', err, job: this.lease.job_id },
          'log lines of a job were not stored',
        )
      })
    }
    this.#storing = undefined
  }
  #take(): LogLine[] {
    let [count, bytes] = [0, 0]
    for (const one of this.#waiting) {
      if (count > 0 && (count >= logLimits.lines || bytes + one.bytes > logLimits.batch)) break
      count++
      bytes += one.bytes
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count).map(({ line }) => line)
  }

  /**
   * Confirms the lease, if its last confirmation is too old. The result is undefined, and the
   * waiting lines are discarded, when the lease is not current, the job belongs to neither a run
   * nor a turn, or the queue does not answer.
   */
  #confirm(): Confirmed | Promise<Confirmed | undefined> {
    const { monotonic: now, settings } = this.#world
    const isRecent = now() - this.#confirmedAt < settings.timing.cadence * 1000
    if (this.#confirmed && (this.#closed || isRecent)) return this.#confirmed
    this.#confirming ??= this.#ask().finally(() => {
      this.#confirming = undefined
    })
    return this.#confirming
  }
  async #ask(): Promise<Confirmed | undefined> {
    const { monotonic: now } = this.#world
    const { queue, job_id, lease_token, session } = this.lease
    const asked = now()
    const facts = await this.#world
      .ask(queue, 'lease', { lease_token, job_id })
      .catch(() => undefined)
    if (facts === undefined || (facts && isRefusal(facts))) {
      this.#discard()
      return undefined
    }
    const target = facts?.run_id ?? facts?.agent_turn_id
    if (!facts || facts.worker_session_id !== session || target === undefined) {
      this.#over = true
      this.#discard()
      if (target === undefined && facts) return undefined
      this.#lost()
      return undefined
    }
    this.#confirmedAt = asked
    this.#confirmed = {
      target,
      attempt: facts.attempt,
      ...(facts.step_key !== undefined && { step_key: facts.step_key }),
      worker_instance_id: facts.worker_instance_id,
    }
    return this.#confirmed
  }
  #discard(): void {
    this.#dropped += this.#waiting.length
    this.#waiting = []
    this.#waitingBytes = 0
  }
}
