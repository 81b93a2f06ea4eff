/**
 * Embeds the rows of semantically searched tables in the background.
 *
 * Invariants:
 * I1. All pending work is recorded in the view's file, so an indexer may stop at any time, and the
 *     next indexer continues.
 * I2. The view never waits for a provider: rows are read and vectors stored in short transactions
 *     before and after a request. A row that was deleted in the meantime gets no vector.
 * I3. Texts, batches and concurrent requests are bounded. A vector in the cache is not requested.
 * I4. While a provider fails, there is one attempt after each pause. A row that the provider
 *     refuses does not delay other rows. A table for which the provider returned vectors of
 *     another size does not delay other tables.
 */
import { createHash } from 'node:crypto'
import { cutText } from '../../../../protocol/rules/cut-text.ts'
import { visibleData } from '../../../../protocol/tables/row-data.ts'
import {
  type EmbeddingAnswer,
  type EmbeddingFailure,
  embeddedText,
  isFailure,
  semanticLimits,
} from '../../../../protocol/tables/semantic.ts'
import type { Store } from '../../../store.ts'
import type { View } from '../../../view.ts'
import { schemaOf } from '../definitions.ts'
import { dataOf, rowById } from '../rows.ts'
import type { VectorCache } from './cache.ts'
import {
  dropUnused,
  forgetRow,
  hasWork,
  nextQueued,
  queueSomeRows,
  setFault,
  setTableFault,
  settleRow,
  storeVector,
} from './indexes.ts'

/** The embedding model, and the limit on the texts that are embedded. */
export interface IndexerTerms {
  /** Id of the embedding model. */
  readonly model: string
  /** Maximum number of characters of a row that are embedded. */
  readonly max_characters: number
}
export interface IndexerPorts {
  readonly view: Pick<View, 'read' | 'change'>
  readonly cache: VectorCache
  embed(texts: readonly string[]): Promise<EmbeddingAnswer>
  /** Returns the current time in Unix milliseconds. */
  now(): number
  /** Returns monotonic time in milliseconds. */
  elapsed(): number
  later(ms: number, run: () => void): () => void
  /** Called with unexpected errors, such as errors of SQLite. */
  alarm(error: Error): void
}

/** Maximum number of concurrent requests. */
const MAX_CONCURRENT = 2
/** Milliseconds for which rows are collected before they are embedded. */
const COLLECT_MS = 20
/**
 * The back-off after failures, in milliseconds: the pause doubles with each consecutive failure.
 */
const PAUSE = { first: 1000, last: 60_000 } as const
/** Milliseconds for which a row is skipped after the provider has refused it. */
const REST_MS = 300_000
/** Maximum number of rows that are skipped at a time. */
const MAX_SKIPPED = 1000
/** A refused text is halved until it has at most this many characters. */
const MIN_HALVED_LENGTH = 250
/** Number of queued rows that are read in one batch. */
const READ = 100
const DAY_MS = 86_400_000

interface Item {
  readonly key: string
  readonly tbl: number
  readonly id: string
  readonly change: number
  readonly hash: Uint8Array
  readonly text: string
}

/** A table for which the provider returned vectors with another number of dimensions. */
interface PausedTable {
  readonly failures: number
  /** Time of the next attempt. */
  readonly until: number
  readonly cancel: () => void
}

interface QueuedRows {
  readonly changed: readonly Item[]
  readonly local: number
}

export class VectorIndexer {
  readonly #terms: IndexerTerms
  readonly #ports: IndexerPorts
  /** Keys of the rows in current requests. */
  readonly #taken = new Set<string>()
  /** Keys of the rows that the provider has refused, with the time of their next attempt. */
  readonly #resting = new Map<string, number>()
  readonly #paused = new Map<number, PausedTable>()
  #requests = 0
  #failures = 0
  #faulty = true
  /**
   * Number of next batches that contain only one row each, because the provider refused a batch.
   */
  #single = 0
  /** The table of the last batch. Tables take turns. */
  #table = -1
  #stopped = false
  #working = false
  /** Cancels the scheduled start of work. */
  #cancel: (() => void) | undefined
  /** Cancels the scheduled attempt for refused rows. */
  #cancelRest: (() => void) | undefined

  constructor(terms: IndexerTerms, ports: IndexerPorts) {
    this.#terms = terms
    this.#ports = ports
  }
  /** Schedules work, if rows wait to be embedded and no work is scheduled or in progress. */
  wake(): void {
    if (this.#stopped || this.#cancel || this.#working || this.#requests >= MAX_CONCURRENT) return
    if (this.#ports.view.read((store) => hasWork(store, this.#terms.model))) this.#after(COLLECT_MS)
  }
  /** Stops the indexer. The answers to requests in progress are ignored. */
  stop(): void {
    this.#stopped = true
    this.#cancel?.()
    this.#cancelRest?.()
    for (const { cancel } of this.#paused.values()) cancel()
    this.#ports.cache.close()
  }

  #after(ms: number): void {
    this.#cancel?.()
    this.#cancel = this.#ports.later(ms, () => {
      this.#cancel = undefined
      void this.#work().catch((error: unknown) => this.#alarm(error))
    })
  }
  #alarm(error: unknown): void {
    if (this.#stopped) return
    this.#ports.alarm(error as Error)
    this.#failures++
    this.#after(pauseAfter(this.#failures))
  }
  /** Starts requests until the maximum number is in progress, or no rows wait. */
  async #work(): Promise<void> {
    if (this.#working) return
    this.#working = true
    try {
      while (!this.#stopped && !this.#cancel && this.#requests < MAX_CONCURRENT) {
        const items = this.#next()
        if (!items) return
        if (items.length > 0) void this.#embed(items).catch((error: unknown) => this.#alarm(error))
        // Yields to other work of the view.
        await new Promise<void>((resolve) => setImmediate(resolve))
      }
    } finally {
      this.#working = false
    }
  }
  /** Performs a part of the local work. Returns rows to embed, or undefined if no work is left. */
  #next(): readonly Item[] | undefined {
    const { view, cache, now, elapsed } = this.#ports
    const { model } = this.#terms
    for (const [key, until] of this.#resting) if (until <= elapsed()) this.#resting.delete(key)
    return view.change((store) => {
      dropUnused(store, now() - semanticLimits.unused_days * DAY_MS)
      if (queueSomeRows(store, model)) return []
      const read = this.#read(store)
      if (!read) return undefined
      const { changed, local } = read
      const missing: Item[] = []
      for (const item of changed) {
        const vector = cache.get(item.hash)
        // A cached vector with another number of dimensions is requested again.
        if (!vector || !storeVector(store, model, { ...item, vector })) missing.push(item)
      }
      const items = this.#batch(missing)
      for (const { key } of items) this.#taken.add(key)
      return items.length > 0 || local > 0 || changed.length > missing.length ? items : undefined
    })
  }
  /**
   * Reads queued rows of the next table that has rows to process: rows that are not in a current
   * request, and that the provider has not refused recently. Paused tables are skipped. Returns
   * undefined if there is no such table. `local`: number of rows that needed no vector.
   */
  #read(store: Store): QueuedRows | undefined {
    const first = nextQueued(store, this.#terms.model, this.#table)
    for (let table = first; table !== undefined; ) {
      this.#table = table
      const paused = (this.#paused.get(table)?.until ?? 0) > this.#ports.elapsed()
      const read = paused ? { changed: [], local: 0 } : this.#readTable(store, table)
      if (read.changed.length + read.local > 0) return read
      table = nextQueued(store, this.#terms.model, table)
      if (table === first) return undefined
    }
    return undefined
  }
  #readTable(store: Store, table: number): QueuedRows {
    const { model, max_characters } = this.#terms
    const schema = schemaOf(store, table)
    const queued = store.all<{ id: string; change: number; hash: Buffer | null }>(
      `SELECT q.id, q.change, v.hash FROM vector_queue q
       LEFT JOIN row_vectors v ON v.tbl = q.tbl AND v.id = q.id
       WHERE q.tbl = ? ORDER BY q.since, q.id LIMIT ?`,
      table,
      READ + this.#taken.size + this.#resting.size,
    )
    const changed: Item[] = []
    let local = 0
    for (const { id, change, hash } of queued) {
      const key = `${table} ${id}`
      if (this.#taken.has(key) || this.#resting.has(key)) continue
      const row = schema && rowById(store, table, id)
      if (!row) {
        forgetRow(store, table, id)
        local++
        continue
      }
      const text = embeddedText(visibleData(schema, dataOf(row)), max_characters)
      const now = createHash('sha256').update(`${model}\0${text}`).digest()
      if (hash && now.equals(hash)) {
        settleRow(store, table, id, change, change)
        local++
      } else changed.push({ key, tbl: table, id, change, hash: now, text })
    }
    return { changed, local }
  }
  /** Returns the first rows that fit into a request. */
  #batch(items: readonly Item[]): readonly Item[] {
    const most = this.#single > 0 ? 1 : semanticLimits.batch
    const batch: Item[] = []
    let left: number = semanticLimits.characters
    for (const item of items) {
      left -= item.text.length
      if (batch.length > 0 && (left < 0 || batch.length === most)) break
      batch.push(item)
    }
    if (batch.length > 0 && this.#single > 0) this.#single--
    return batch
  }
  /** Pauses a table whose index rejected a vector. */
  #pauseTable(store: Store, table: number): void {
    const { elapsed, later } = this.#ports
    const before = this.#paused.get(table)
    before?.cancel()
    const failures = (before?.failures ?? 0) + 1
    const ms = pauseAfter(failures)
    this.#paused.set(table, {
      failures,
      until: elapsed() + ms,
      cancel: later(ms, () => this.wake()),
    })
    setTableFault(store, table, 'invalid_response')
  }
  /** Ends the pause of a table if its time has passed. */
  #resumeTable(store: Store, table: number): void {
    const paused = this.#paused.get(table)
    if (!paused || paused.until > this.#ports.elapsed()) return
    this.#paused.delete(table)
    setTableFault(store, table, null)
  }

  async #embed(items: readonly Item[]): Promise<void> {
    this.#requests++
    try {
      const answer = await this.#ask(items)
      if (this.#stopped) return
      if (isFailure(answer)) this.#failed(items, answer)
      else this.#embedded(items, answer.vectors)
    } finally {
      this.#requests--
      for (const { key } of items) this.#taken.delete(key)
    }
    if (!this.#cancel) await this.#work()
  }
  /**
   * Requests vectors. If the provider refuses the text of a single row, half of the text is sent.
   */
  async #ask(items: readonly Item[]): Promise<EmbeddingAnswer> {
    let texts = items.map(({ text }) => text)
    for (;;) {
      const answer = await this.#ports.embed(texts)
      const [only = ''] = texts
      if (
        !isFailure(answer) ||
        !answer.refused ||
        texts.length > 1 ||
        only.length <= MIN_HALVED_LENGTH
      )
        return answer
      texts = [cutText(only, Math.max(MIN_HALVED_LENGTH, only.length >> 1))]
    }
  }
  #embedded(items: readonly Item[], vectors: readonly string[]): void {
    const { view, cache } = this.#ports
    const found = items.map((item, i) => ({
      item,
      vector: Buffer.from(vectors[i] ?? '', 'base64'),
    }))
    const { model } = this.#terms
    const accepted = view.change((store) => {
      if (this.#faulty && this.#resting.size === 0) {
        setFault(store, model, null)
        for (const table of this.#paused.keys()) setTableFault(store, table, 'invalid_response')
        this.#faulty = false
      }
      const stored = found.filter(({ item, vector }) =>
        storeVector(store, model, { ...item, vector }),
      )
      const [first] = items
      if (first && stored.length < found.length) this.#pauseTable(store, first.tbl)
      else if (first) this.#resumeTable(store, first.tbl)
      return stored
    })
    cache.put(accepted.map(({ item, vector }) => ({ hash: item.hash, vector })))
    if (!this.#faulty) this.#failures = 0
  }
  #failed(items: readonly Item[], { failed, refused, retry_after = 0 }: EmbeddingFailure): void {
    if (refused && items.length > 1) {
      this.#single = items.length
      return
    }
    this.#faulty = true
    this.#ports.view.change((store) => setFault(store, this.#terms.model, failed))
    const [item] = items
    if (refused && item && this.#resting.size < MAX_SKIPPED) {
      this.#resting.set(item.key, this.#ports.elapsed() + REST_MS)
      this.#cancelRest ??= this.#ports.later(REST_MS, () => {
        this.#cancelRest = undefined
        this.wake()
      })
      return
    }
    this.#failures++
    this.#after(Math.max(retry_after, pauseAfter(this.#failures)))
  }
}
/** Returns the pause after a number of consecutive failures, in milliseconds. */
const pauseAfter = (failures: number): number =>
  Math.min(PAUSE.last, PAUSE.first * 2 ** Math.min(failures - 1, 16))
