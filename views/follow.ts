/**
 * Keeps a view up to date with its journal, and delays answers until the view is as fresh as the
 * caller requires. This file does not depend on NATS: the journal is the port `ViewJournal`, and
 * timers can be replaced.
 *
 * F1. Unless it is marked `late`, the answer to a query without a cursor reflects everything that
 *     was in the journal when the query arrived. The end of the journal is read after the query
 *     arrives, once for all queries that wait together. If this process is the journal's only
 *     writer, the end is known without a request.
 * F2. A message that cannot be applied raises an alarm. Following stops, and begins again after a
 *     pause. Meanwhile, queries that need newer data wait, and after their timeout are refused or
 *     answered `late`. The message is never skipped.
 * F3. Between two parts of a long query, other queries are answered and messages applied.
 */
import { type Envelope, sequenceOf } from '../protocol/entry.ts'
import { hasGap, isEncoded, partsOf, slicesOf } from './batches.ts'
import { isDamagedFile } from './files/file.ts'
import { JournalReplaced, type Message, type View, viewBehind } from './view.ts'

/** The journal of one partition. */
export interface ViewJournal {
  /**
   * Delivers messages with a sequence ≥ `from`, in order and without end. Each batch waits until
   * the promise that `on` returned has resolved. Returns a function that stops the delivery.
   */
  follow(
    from: number,
    on: (batch: readonly Message[]) => Promise<void> | void,
  ): () => Promise<void> | void
  /**
   * Returns the first retained and the last sequence, as the stream's leader reports them. An empty
   * journal has `last` 0 or `first` > `last`.
   */
  position(): Promise<{ readonly first: number; readonly last: number }>
  /**
   * Returns the last sequence without a request; undefined unless this process is the only writer.
   */
  end?(): number | undefined
  /** Decodes an envelope and loads its large values. If absent, the bytes are parsed as JSON. */
  decode?(data: Uint8Array | string): Promise<Envelope>
}
export interface FollowerOptions {
  /** Runs a function after the given number of milliseconds. The returned function cancels it. */
  readonly later?: (ms: number, run: () => void) => () => void
  /** Maximum number of milliseconds for which a query waits for the view to become fresh enough. */
  readonly timeout?: number
  /** Milliseconds for which a follower pauses after a failure, before it starts again. */
  readonly pause?: number
  readonly hooks?: Hooks
}
/** Metrics and alarms of a follower. */
export interface Hooks {
  /** Called when messages have been applied; `seconds` is the time that applying them took. */
  applied?(batch: {
    readonly sequence: number
    readonly messages: number
    readonly entries: number
    readonly seconds: number
  }): void
  /** Called when the journal's end has been read for queries; `messages` is the lag of the view. */
  lag?(messages: number): void
  /** Called when a query has been answered or refused. */
  answered?(question: {
    readonly name: string
    readonly seconds: number
    readonly refused: boolean
  }): void
  /** Called for faults that operators should know about, such as a failed save or a reset view. */
  alarm?(error: unknown): void
}
interface Waiter {
  readonly target: number
  readonly done: (fresh: boolean) => void
}

/**
 * Milliseconds after which applied changes are saved to the view's file, even if there are only a
 * few.
 */
const SAVE_AFTER_MS = 3000
/** Milliseconds between two deletions of leftover rows. */
const TIDY_EVERY_MS = 20

/** Milliseconds after which a failed request for the journal's end is repeated. */
const RETRY_EVERY_MS = 100

export class ViewFollower {
  readonly #view: View
  readonly #journal: ViewJournal
  readonly #options: Required<Omit<FollowerOptions, 'hooks'>> & { readonly hooks: Hooks }
  readonly #waiters = new Set<Waiter>()
  #reading: Promise<unknown> = Promise.resolve()
  #asking: Promise<number> | undefined
  #first = 0
  #running = false
  /**
   * Incremented whenever following begins or ends, so that batches of earlier attempts are dropped.
   */
  #attempt = 0
  #stop: () => Promise<void> | void = () => undefined
  #cancelRetry: () => void = () => undefined
  #cancelSave: (() => void) | undefined
  #cancelTidy: (() => void) | undefined

  constructor(view: View, journal: ViewJournal, options: FollowerOptions = {}) {
    this.#view = view
    this.#journal = journal
    this.#options = { later, timeout: 10_000, pause: 1000, hooks: {}, ...options }
  }

  /**
   * Starts following the journal. Resolves when following has begun, not when the view has caught
   * up. Rejects when the journal cannot be reached.
   */
  async start(): Promise<void> {
    this.#running = true
    await this.#begin()
  }
  /** Stops following and refuses the waiting queries. The view stays open. */
  async stop(): Promise<void> {
    this.#running = false
    this.#attempt++
    this.#cancelRetry()
    this.#saveLater(false)
    this.#cancelTidy?.()
    this.#cancelTidy = undefined
    for (const waiter of [...this.#waiters]) waiter.done(false)
    await this.#stop()
  }
  /** Returns the last applied stream sequence. */
  position(): number {
    return this.#view.position()
  }

  /**
   * Answers a query from a view that is fresh enough.
   * @param fresh how fresh the view must be. Undefined: it has applied everything that was
   * committed before the query. A cursor: it has applied everything up to this cursor. 0: no
   * requirement.
   * @param within milliseconds after which the caller prefers an outdated answer, which is marked
   * `late`. Absent: the query is refused after the timeout.
   * @returns the answer or the refusal of the query. The refusal is `service_unavailable` when the
   * view did not catch up in time, is stopped, or has a damaged file.
   */
  async ask(
    name: string,
    project: string,
    input: unknown,
    fresh?: number,
    within?: number,
  ): Promise<unknown> {
    const started = performance.now()
    const reached = await this.#reached(fresh, within ?? this.#options.timeout)
    const late = !reached && within !== undefined && this.#running
    const known = reached || late ? await this.#answer(name, project, input) : viewBehind
    const answer =
      late && typeof known === 'object' && known !== null && !('refused' in known)
        ? { ...known, late }
        : known
    this.#options.hooks.answered?.({
      name,
      seconds: (performance.now() - started) / 1000,
      refused: typeof answer === 'object' && answer !== null && 'refused' in answer,
    })
    return answer
  }
  async #answer(name: string, project: string, input: unknown): Promise<unknown> {
    try {
      const parts = this.#view.askInParts(name, project, input)
      let part = parts.next()
      while (!part.done) {
        await breath()
        if (!this.#running) return viewBehind
        part = parts.next()
      }
      this.#tidyLater()
      return part.value
    } catch (error) {
      if (!isDamagedFile(error)) throw error
      this.#failed(error)
      return viewBehind
    }
  }

  /**
   * Waits until the view is fresh enough. Returns false on a timeout. One timeout covers both
   * reading the journal's end and waiting until the view has reached that end.
   */
  async #reached(fresh: number | undefined, within: number): Promise<boolean> {
    if (!this.#running) return false
    const known = fresh === undefined ? this.#journal.end?.() : sequenceOf(fresh)
    if (known !== undefined && known <= this.#view.position()) return true
    return new Promise<boolean>((resolve) => {
      let waiter: Waiter | undefined
      const done = (reached: boolean) => {
        cancel()
        if (waiter) this.#waiters.delete(waiter)
        resolve(reached)
      }
      let over = false
      const cancel = this.#options.later(within, () => {
        over = true
        done(false)
      })
      const wait = (target: number) => {
        if (over) return
        if (!this.#running) return done(false)
        if (target <= this.#view.position()) return done(true)
        waiter = { target, done }
        this.#waiters.add(waiter)
      }
      const find = (): void =>
        void this.#readEnd().then(wait, () => {
          // The usual cause is that the stream has no leader. A leader may be elected before the
          // timeout.
          if (over || !this.#running) done(false)
          else this.#options.later(RETRY_EVERY_MS, find)
        })
      if (known !== undefined) wait(known)
      else find()
    })
  }
  /**
   * Returns the end of the journal, from a read that begins after this call: a read that is already
   * in progress may miss recent messages. All calls during one read share the next read.
   */
  #readEnd(): Promise<number> {
    this.#asking ??= this.#reading.then(() => {
      this.#asking = undefined
      const end = this.#journalEnd()
      this.#reading = end.catch(() => undefined)
      return end
    })
    return this.#asking
  }
  async #journalEnd(): Promise<number> {
    const { first, last } = await this.#journal.position()
    this.#options.hooks.lag?.(Math.max(0, last - this.#view.position()))
    return first > last ? 0 : last
  }

  async #begin(): Promise<void> {
    const attempt = ++this.#attempt
    const { first, last } = await this.#journal.position()
    if (!this.#running || attempt !== this.#attempt) return
    if (last < this.#view.position()) {
      this.#options.hooks.alarm?.(
        new JournalReplaced(
          `journal: the end is ${last}, but ${this.#view.position()} was applied`,
        ),
      )
      this.#view.reset()
    }
    this.#first = first
    // The last applied message is requested again, because its id reveals whether the journal was
    // replaced.
    this.#stop = this.#journal.follow(Math.max(1, this.#view.position()), (batch) =>
      this.#apply(batch, attempt),
    )
  }
  async #apply(batch: readonly Message[], attempt: number): Promise<void> {
    try {
      for (const [at, slice] of slicesOf(batch).entries()) {
        if (at > 0) await breath()
        const messages = await Promise.all(slice.map((message) => this.#decoded(message)))
        for (const [i, part] of partsOf(messages).entries()) {
          if (i > 0) await breath()
          if (attempt !== this.#attempt) return
          if (hasGap(part, this.#view.position())) {
            this.#first = (await this.#journal.position()).first
            if (attempt !== this.#attempt) return
          }
          this.#applyPart(part)
        }
      }
    } catch (error) {
      if (attempt === this.#attempt) this.#failed(error)
    }
  }
  #applyPart(messages: readonly Message[]): void {
    const started = performance.now()
    const entries = this.#view.apply(messages, this.#first)
    const sequence = this.#view.position()
    this.#options.hooks.applied?.({
      sequence,
      messages: messages.length,
      entries,
      seconds: (performance.now() - started) / 1000,
    })
    for (const waiter of [...this.#waiters]) if (waiter.target <= sequence) waiter.done(true)
    this.#saveLater(this.#view.unsaved())
    this.#tidyLater()
  }
  /**
   * Schedules deletions of leftover rows, a few at a time, so that queries are answered in between.
   * Whether rows are left is checked only then, because the check takes several queries.
   */
  #tidyLater(): void {
    if (!this.#running) return
    this.#cancelTidy ??= this.#options.later(TIDY_EVERY_MS, () => {
      this.#cancelTidy = undefined
      try {
        if (!this.#view.untidy()) return
        this.#view.tidy()
        this.#tidyLater()
      } catch (error) {
        this.#failed(error)
      }
    })
  }
  /** Schedules a save of the view's file, or cancels the scheduled save. */
  #saveLater(wanted: boolean): void {
    if (!wanted) {
      this.#cancelSave?.()
      this.#cancelSave = undefined
    } else if (this.#running) {
      this.#cancelSave ??= this.#options.later(SAVE_AFTER_MS, () => {
        this.#cancelSave = undefined
        try {
          this.#view.save()
        } catch (error) {
          this.#failed(error)
        }
      })
    }
  }
  async #decoded(message: Message): Promise<Message> {
    const { data } = message
    return isEncoded(data) && this.#journal.decode
      ? { ...message, data: await this.#journal.decode(data) }
      : message
  }
  /**
   * Raises the alarm, and restarts after a pause. If the journal was replaced or the file is
   * damaged, it restarts from the first message, otherwise from the view's position.
   */
  #failed(error: unknown): void {
    this.#attempt++
    this.#options.hooks.alarm?.(error)
    if (error instanceof JournalReplaced || isDamagedFile(error)) this.#view.reset()
    const stop = this.#stop
    this.#stop = () => undefined
    // Not awaited, to avoid a deadlock: this may run inside the callback of a batch, and the port
    // stops only after that callback has returned.
    Promise.resolve(stop()).catch((also: unknown) => this.#options.hooks.alarm?.(also))
    this.#cancelRetry()
    if (this.#running)
      this.#cancelRetry = this.#options.later(
        this.#options.pause,
        () => void this.#begin().catch((again: unknown) => this.#failed(again)),
      )
  }
}

/** Yields to the event loop, so that queries that have arrived are answered. */
const breath = () => new Promise<void>((resolve) => setImmediate(resolve))
const later = (ms: number, run: () => void): (() => void) => {
  const timer = setTimeout(run, ms)
  return () => clearTimeout(timer)
}
