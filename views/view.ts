/**
 * A view: the journal of one partition as rows in one SQLite file. The owner of a view applies
 * batches in journal order (`follow.ts`). Queries are answered from the entries applied so far.
 *
 * V1. Rows and position are committed together: the file always equals the journal up to some
 *     position. Changes are collected in memory until there are many, or until a query or another
 *     entry needs the tables. Then they are written in one open transaction, which `save` commits.
 *     If they are written because there are many, records that will probably change soon stay in
 *     memory.
 *     `position()` and every answer include the changes in memory and in the open transaction. If
 *     the process dies or a write fails, those changes are lost: `position()` then returns the
 *     position of the file, from which the journal must be applied again.
 * V2. Applying a message again changes nothing: messages up to `position()` are skipped.
 * V3. No entry is skipped: `apply` throws for an unreadable envelope, and for an envelope whose
 *     predecessor in its shard was neither applied nor trimmed from the journal. Unknown kinds and
 *     event types are ignored, because newer releases wrote them.
 * V4. The file may be lost. A file that is damaged or has another schema is deleted, and the
 *     journal is applied from the start.
 */
import { cursorOf, type Envelope, EVENTS_PER_ENVELOPE, placeEntries } from '../protocol/entry.ts'
import { refuse } from '../protocol/errors.ts'
import type { ViewQueries } from '../protocol/queries/views.ts'
import { defaultTiming } from '../protocol/workers/timing.ts'
import type { InParts } from './define-view.ts'
import { openStore, removeFile } from './files/file.ts'
import type { Store } from './store.ts'
import type { DistanceEngine } from './tables/tables/vectors/distance.ts'
import { armsOf, bufferedKinds, queryOf, upkeeps } from './views.ts'

/**
 * A journal message as a view receives it. `message_id`, if known, allows a view to detect that the
 * journal was replaced.
 */
export interface Message {
  readonly sequence: number
  /** The envelope, as bytes, as JSON or as an object. */
  readonly data: Uint8Array | string | Envelope
  readonly message_id?: string
}
export interface ViewOptions {
  /** The clock, in Unix milliseconds. */
  readonly now?: () => number
  /** Milliseconds for which a worker that is no longer connected is still listed. */
  readonly stale?: number
  /** Called after each commit to the file. */
  readonly saved?: () => void
  /** Id of the organization, for partitions that do not contain the organization itself. */
  readonly organization?: () => string
}

/** The error for a missing envelope: the journal does not continue at the view's position. */
class JournalHole extends Error {
  override readonly name = 'JournalHole'
}
/** The error for a view that was built from another journal. The view must be rebuilt. */
export class JournalReplaced extends Error {
  override readonly name = 'JournalReplaced'
}

/**
 * A position in the journal. `tails`: the last applied sequence of each shard. `oldest`: see
 * `QueryContext.oldest`.
 */
interface Position {
  readonly sequence: number
  readonly message_id?: string
  readonly tails: readonly number[]
  readonly oldest: number
}
const start: Position = { sequence: 0, tails: [], oldest: 0 }

/**
 * Maximum numbers of entries, rows and characters that wait in memory before they are written. A
 * query may have to wait for this write, which takes 3 to 4 µs per row.
 */
const WAITING = { entries: 512, rows: 2000, size: 4_000_000 }
/**
 * Number of entries after which the open transaction is committed. The larger the transaction, the
 * more entries share the write of a page, but the more entries must be applied again after a crash.
 */
const MAX_OPEN_ENTRIES = 8192
export class View {
  readonly #file: string
  readonly #options: ViewOptions
  #store: Store
  #position: Position = start
  /** The position that the file contains. */
  #saved: Position = start
  /** Number of entries that were applied since changes were last written to the tables. */
  #waiting = 0
  /** Number of applied entries not yet in the file: in memory, or in the open transaction. */
  #open = 0
  private constructor(file: string, options: ViewOptions) {
    this.#file = file
    this.#options = options
    this.#store = openStore(file)
    this.#position = this.#saved = this.#load()
    this.#store.tail.begin(this.#current())
  }
  /** Opens or creates the file of a view; `:memory:` keeps the view in memory only. */
  static open(file: string, options: ViewOptions = {}): View {
    return new View(file, options)
  }

  /** Returns the last applied stream sequence; 0 if no message was applied. */
  position(): number {
    return this.#position.sequence
  }

  /**
   * Applies messages in journal order. Messages that were applied before are skipped.
   * @param first the first sequence that the journal still has. It grows when an operator trims the
   *   journal.
   * @returns the number of applied entries.
   * @throws JournalHole when an envelope is missing; JournalReplaced when the journal has another
   *   message at the view's position; an error when a message is unreadable; errors of SQLite.
   */
  apply(batch: readonly Message[], first = 0): number {
    const before = this.#position
    const todo = batch.filter(({ sequence, message_id }) => {
      if (
        sequence === before.sequence &&
        message_id !== undefined &&
        before.message_id !== undefined &&
        message_id !== before.message_id
      ) {
        throw new JournalReplaced(
          `journal: message ${sequence} is ${message_id}, but ${before.message_id} was applied`,
        )
      }
      return sequence > before.sequence
    })
    if (todo.length === 0) return 0
    const envelopes = todo.map(read)
    const gathers = envelopes.every(({ entries }) =>
      entries.every(({ kind }) => bufferedKinds.has(kind)),
    )
    const applied = () => this.#applyAll(todo, envelopes, first)
    const entries = gathers ? this.#gather(applied) : this.#settle(applied)
    this.#open += entries
    if (this.#open >= MAX_OPEN_ENTRIES) this.save()
    else if (
      this.#waiting >= WAITING.entries ||
      this.#store.rows >= WAITING.rows ||
      this.#store.size >= WAITING.size
    )
      this.#relieve()
    return entries
  }
  /**
   * Commits all applied entries that are not yet in the file.
   * @throws any error of SQLite. The uncommitted changes are then discarded, and `position()`
   * returns the position of the file.
   */
  save(): void {
    if (!this.unsaved()) return
    this.#settle()
    this.#change(() => {
      this.#store.run(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('position', ?)",
        JSON.stringify(this.#position),
      )
      this.#store.db.exec('COMMIT')
    })
    this.#saved = this.#position
    this.#open = 0
    this.#options.saved?.()
  }
  /** Applies entries whose changes can wait in memory. */
  #gather(applied: () => number): number {
    try {
      const entries = applied()
      this.#waiting += entries
      return entries
    } catch (error) {
      this.#store.undo()
      throw error
    }
  }
  /** Writes the waiting changes to the tables, then the changes that `applied` makes. */
  #settle(applied?: () => number): number {
    if (this.#waiting + this.#store.rows === 0 && !applied) return 0
    return this.#change(() => {
      this.#store.flush()
      this.#waiting = 0
      if (!applied) return 0
      const entries = applied()
      this.#store.flush()
      return entries
    })
  }
  /**
   * Writes the waiting changes to the tables, except records that will probably change soon. If
   * many of these wait, they are written too.
   */
  #relieve(): void {
    this.#change(() => {
      this.#store.flush(false)
      if (this.#store.rows > WAITING.rows / 2) this.#store.flush()
      this.#waiting = 0
    })
  }
  /** Whether upkeep is due. */
  untidy(): boolean {
    return upkeeps.some((upkeep) => upkeep.isDue(this.#store))
  }
  /** Performs a part of the upkeep of each view. */
  tidy(): void {
    this.#store.db.transaction(() => {
      for (const upkeep of upkeeps) upkeep.perform(this.#store)
    })()
  }
  /** Returns the engine that computes the distances of vectors. */
  distances(): DistanceEngine {
    return this.#store.distances
  }
  /** Reads the tables. Changes that wait in memory are not visible. */
  read<T>(run: (store: Store) => T): T {
    return run(this.#store)
  }
  /** Atomically changes rows that are not derived from the journal, such as vectors. */
  change<T>(run: (store: Store) => T): T {
    return this.#store.db.transaction(() => run(this.#store))()
  }
  /** Whether there are applied entries that are not yet in the file. */
  unsaved(): boolean {
    return this.#position !== this.#saved
  }
  /**
   * Changes the tables within the open transaction. If that fails, the whole transaction is
   * discarded, together with the changes that wait in memory.
   */
  #change<T>(change: () => T): T {
    const { db } = this.#store
    try {
      if (!db.inTransaction) db.exec('BEGIN IMMEDIATE')
      return change()
    } catch (error) {
      if (db.inTransaction) db.exec('ROLLBACK')
      this.#position = this.#saved
      this.#waiting = this.#open = 0
      this.#store.forget(this.#current())
      throw error
    }
  }
  #current(): number {
    return cursorOf(this.#position.sequence, EVENTS_PER_ENVELOPE - 1)
  }
  #applyAll(batch: readonly Message[], envelopes: readonly Envelope[], first: number): number {
    const tails = new Set(this.#position.tails)
    let { sequence, message_id, oldest } = this.#position
    if (first > sequence + 1) oldest = cursorOf(first, 0)
    let entries = 0
    for (const [i, message] of batch.entries()) {
      if (message.sequence === sequence) continue
      if (message.sequence < sequence)
        throw new JournalHole(`journal: message ${message.sequence} came after ${sequence}`)
      const envelope = envelopes[i] as Envelope
      const { prev } = envelope
      if (prev !== 0 && !tails.delete(prev) && prev >= first)
        throw new JournalHole(
          `journal: message ${message.sequence} follows ${prev}, which was not applied`,
        )
      tails.add(message.sequence)
      for (const place of placeEntries(message.sequence, envelope))
        for (const arm of armsOf(place.entry.kind)) arm(this.#store, place)
      entries += envelope.entries.length
      sequence = message.sequence
      message_id = message.message_id
    }
    this.#position = {
      sequence,
      ...(message_id !== undefined && { message_id }),
      tails: [...tails],
      oldest,
    }
    this.#store.keep(this.#current())
    return entries
  }

  /**
   * Answers a query by name; `input` contains path and query parameters.
   * @returns the answer or the refusal of the query; `service_unavailable` if this release has no
   * such query.
   */
  ask(name: string, project: string, input: unknown): unknown {
    const parts = this.askInParts(name, project, input)
    for (;;) {
      const { done, value } = parts.next()
      if (done) return value
    }
  }
  /**
   * Answers a query as `ask` does, but in parts. Entries may be applied between two parts.
   * @yields nothing, after each part except the last.
   */
  *askInParts(name: string, project: string, input: unknown): InParts<unknown> {
    const store = this.#store
    const answer = this.#begin(name, project, input)
    if (!isInParts(answer)) return answer
    for (;;) {
      const { done, value } = answer.next()
      if (done) return value
      yield
      if (this.#store !== store) return viewBehind
      this.#settle()
    }
  }
  #begin(name: string, project: string, input: unknown): unknown {
    const query = queryOf(name)
    if (!query)
      return refuse(
        'service_unavailable',
        { question: name },
        'This view does not support the query; a view of another release may.',
      )
    const reaches = () => this.#store.tail.reaches((input as ViewQueries['feed']['input']).after)
    // Changes, and the newest frames of the feed, are read from memory only.
    if (name !== 'changes' && !(name === 'feed' && reaches())) this.#settle()
    const { now = Date.now, stale = defaultTiming.stale * 1000 } = this.#options
    const { oldest } = this.#position
    return query(
      {
        store: this.#store,
        project: this.#store.findProject(project),
        now: now(),
        stale,
        organization: this.#organization(),
        current: this.#current(),
        oldest,
      },
      input ?? {},
    )
  }
  #organization(): string {
    return (
      this.#options.organization?.() ??
      this.#store.one<{ value: string }>("SELECT value FROM meta WHERE key = 'organization'")
        ?.value ??
      ''
    )
  }

  /** Discards all rows: the journal must be applied from its first message. */
  reset(): void {
    this.#store.db.close()
    removeFile(this.#file)
    this.#store = openStore(this.#file)
    this.#position = this.#saved = start
    this.#waiting = this.#open = 0
  }
  /**
   * Saves and closes the file.
   * @throws any error that `save` throws. The file is closed nevertheless.
   */
  close(): void {
    try {
      this.save()
    } finally {
      this.#store.db.close()
    }
  }
  #load(): Position {
    const row = this.#store.one<{ value: string }>("SELECT value FROM meta WHERE key = 'position'")
    return row ? (JSON.parse(row.value) as Position) : start
  }
}

const isInParts = (answer: unknown): answer is InParts<unknown> =>
  typeof answer === 'object' && answer !== null && Symbol.iterator in answer

/** The refusal of a view that did not catch up in time, was stopped, or has a damaged file. */
export const viewBehind = refuse(
  'service_unavailable',
  { reason: 'view_behind' },
  'The view has not caught up yet; retry.',
)

function read({ sequence, data }: Message): Envelope {
  let envelope: Partial<Envelope>
  try {
    const json = data instanceof Uint8Array ? new TextDecoder().decode(data) : data
    envelope = typeof json === 'string' ? (JSON.parse(json) as Partial<Envelope>) : json
  } catch (cause) {
    throw new Error(`journal: message ${sequence} is not JSON`, { cause })
  }
  const { v, prev, entries } = envelope
  if (v !== 1 || typeof prev !== 'number' || !Array.isArray(entries))
    throw new Error(`journal: message ${sequence} is not an envelope of version 1`)
  const outside = entries.find((entry) => !Array.isArray(entry.events))
  if (outside)
    throw new Error(
      `journal: message ${sequence} stores large values externally; decode it before it is applied`,
    )
  return envelope as Envelope
}
