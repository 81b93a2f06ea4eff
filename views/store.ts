/**
 * Access to a view's database: statements are prepared once, and changes are held in memory until
 * they are written together.
 *
 * S1. Rows change only inside a transaction that `View` begins. Before `View` commits a new
 *     position, it writes the changes in memory by `flush`.
 * S2. A successful batch ends with `keep`. A batch that fails before anything was written to the
 *     tables ends with `undo`, which reverts its changes in memory.
 * S3. After a rollback, `forget` must run, because cached records may contain changes that were
 *     rolled back.
 */

import type { Database, Statement } from 'better-sqlite3'
import { TransientMap } from '../protocol/rules/transient-map.ts'
import { MAX_PAGE_CHARACTERS, sizeOf } from './page.ts'
import { Shapes } from './shapes.ts'
import { ChangeTail } from './tables/changes/tail.ts'
import { FeedTail } from './tables/runs/tail.ts'
import { OrderDemand } from './tables/tables/demand.ts'
import { addDistance, type DistanceEngine } from './tables/tables/vectors/distance.ts'

/** A value that SQLite stores. */
export type Value = string | number | null
/** A value that can be bound to a parameter of a statement. */
type Bound = Value | Uint8Array

/** Options of a table's cache. */
interface CacheOptions<V> {
  /**
   * Maximum number of records that stay cached after a flush. If there are more, all records that
   * need not be written are dropped.
   */
  readonly most?: number
  /** Copies a value for `edit`. By default, the copy is shallow. */
  readonly copy?: (value: V) => V
  /**
   * Whether a value will probably change soon. A partial flush leaves such a value in memory, and
   * every flush drops the other values that it writes from the cache. If absent, every flush writes
   * all values, and written values stay cached.
   */
  readonly changes?: (value: V, key: string) => boolean
}

/** Changes that wait in memory until a flush writes them to the tables. */
export interface Buffered {
  /** The number of rows that wait to be written. */
  readonly waiting: number
  /** Accepts the changes of a batch. */
  keep(): void
  /** Reverts the changes since the last `keep`. */
  undo(): void
  /**
   * Writes the waiting rows.
   * @param all whether values that will probably change soon are written too.
   */
  flush(all: boolean): void
  /** Discards all changes that have not been written. */
  forget(): void
}
/**
 * A write-back cache of one table. Between two flushes, a record is loaded at most once and written
 * at most once, regardless of how many events change it. A value that existed before the current
 * batch is never mutated, so that `undo` can restore it: events replace a value by `set`, or change
 * the copy that `edit` returns.
 */
export class WriteBackCache<V> implements Buffered {
  readonly #rows = new TransientMap<string, V>()
  readonly #dirty = new Set<string>()
  /** The values that the current batch replaced, by key; undefined for keys that it added. */
  #before = new Map<string, V | undefined>()
  readonly #load: (key: string) => V | undefined
  readonly #save: (value: V, key: string) => void
  readonly #most: number
  readonly #copy: (value: V) => V
  readonly #changes: ((value: V, key: string) => boolean) | undefined
  constructor(
    load: (key: string) => V | undefined,
    save: (value: V, key: string) => void,
    { most = MAX_CACHED, copy = (value) => ({ ...value }), changes }: CacheOptions<V> = {},
  ) {
    this.#load = load
    this.#save = save
    this.#most = most
    this.#copy = copy
    this.#changes = changes
  }
  /** The number of records that wait to be written. */
  get waiting(): number {
    return this.#dirty.size
  }
  /**
   * Returns the value of a key; undefined if it has none. The value is loaded if it is not cached.
   * @param fresh whether the caller is certain that the table has no such key. In that case,
   * nothing is loaded.
   */
  get(key: string, fresh = false): V | undefined {
    const kept = this.#rows.get(key)
    if (kept !== undefined || fresh) return kept
    const loaded = this.#load(key)
    if (loaded !== undefined) this.#rows.set(key, loaded)
    return loaded
  }
  /** Returns the cached value of a key; undefined if none is cached. Nothing is loaded. */
  peek(key: string): V | undefined {
    return this.#rows.get(key)
  }
  /** Returns the keys of the cached values. */
  keys(): IterableIterator<string> {
    return this.#rows.keys()
  }
  set(key: string, value: V): void {
    if (!this.#before.has(key)) this.#before.set(key, this.#rows.get(key))
    this.#rows.set(key, value)
    this.#dirty.add(key)
  }
  /**
   * Returns a value that the current batch may mutate; undefined if the key has no value. The value
   * is copied once for each batch.
   * @param fresh as for `get`.
   */
  edit(key: string, fresh = false): V | undefined {
    const value = this.get(key, fresh)
    if (value === undefined || this.#before.has(key)) return value
    const copy = this.#copy(value)
    this.set(key, copy)
    return copy
  }
  /**
   * Writes the changed values.
   * @param all whether values that will probably change soon are written too.
   */
  flush(all: boolean): void {
    const changes = this.#changes
    for (const key of this.#dirty) {
      const value = this.#rows.get(key) as V
      const soon = changes?.(value, key) === true
      if (soon && !all) continue
      this.#save(value, key)
      this.#dirty.delete(key)
      if (changes && !soon) this.#rows.delete(key)
    }
    if (this.#rows.size - this.#dirty.size <= this.#most) return
    for (const key of this.#rows.keys()) if (!this.#dirty.has(key)) this.#rows.delete(key)
  }
  keep(): void {
    // Replaced instead of cleared, because a cleared map would retain its values; see
    // `TransientMap`.
    if (this.#before.size > 0) this.#before = new Map()
  }
  undo(): void {
    for (const [key, value] of this.#before) {
      if (value !== undefined) this.#rows.set(key, value)
      else if (this.#rows.delete(key)) this.#dirty.delete(key)
    }
    this.keep()
  }
  forget(): void {
    this.#rows.clear()
    this.#dirty.clear()
    this.keep()
  }
}
/** Default maximum number of cached records of a table. */
const MAX_CACHED = 8192
/** Number of rows that one multi-row INSERT writes. */
const ROWS_AT_ONCE = 32

/**
 * Rows that wait to be inserted into a table, and the statements that insert one row or
 * `ROWS_AT_ONCE` rows.
 */
interface Appended {
  /** The values of all rows, in order. */
  values: Value[]
  /** The number of values from batches that `keep` has accepted. */
  kept: number
  readonly columns: number
  readonly one: string
  readonly many: string
}
function inserts(table: string, columns: number): Omit<Appended, 'values' | 'kept'> {
  const row = `(${new Array(columns).fill('?').join(', ')})`
  const sql = `INSERT INTO ${table} VALUES `
  return { columns, one: sql + row, many: sql + new Array(ROWS_AT_ONCE).fill(row).join(', ') }
}

export class Store {
  readonly db: Database
  /** The engine that computes the distances between vectors. */
  readonly distances: DistanceEngine
  readonly #statements = new Map<string, Statement<Bound[]>>()
  readonly #buffers = new Map<string, Buffered>()
  readonly #appended = new Map<string, Appended>()
  /** The compact form of records. */
  readonly shapes = new Shapes()
  /** The newest frames of the feed, in memory. */
  readonly tail = new FeedTail()
  /** The records that have changed recently, in memory. */
  readonly changes = new ChangeTail()
  /** Statistics, in memory, about the row orders of tables that queries need. */
  readonly demand = new OrderDemand()
  #projects = new Map<string, number>()
  #newProjects: string[] = []
  #lastRun: number | undefined
  #size = 0
  constructor(db: Database) {
    this.db = db
    this.distances = addDistance(db)
    this.#loadNames()
  }
  /** The number of characters in the appended rows that wait to be written. */
  get size(): number {
    return this.#size
  }
  /** The number of rows that wait to be written. */
  get rows(): number {
    let rows = 0
    for (const { values, columns } of this.#appended.values()) rows += values.length / columns
    for (const buffer of this.#buffers.values()) rows += buffer.waiting
    return rows
  }
  #loadNames(): void {
    this.shapes.begin(this.all('SELECT shape FROM shapes ORDER BY n'))
    this.#newProjects = []
    this.#projects = new Map(
      this.all<{ id: string; n: number }>('SELECT id, n FROM projects').map(({ id, n }) => [id, n]),
    )
  }
  /**
   * Returns the prepared statement. SQLite (3.53) prepares a statement with `LIMIT ?` again for each
   * execution, to plan for the bound number, which takes 5 to 20 µs. It does not look at the value
   * of the expression `+?`.
   */
  #prepare(sql: string): Statement<Bound[]> {
    let statement = this.#statements.get(sql)
    if (!statement)
      this.#statements.set(
        sql,
        (statement = this.db.prepare<Bound[]>(sql.replaceAll('LIMIT ?', 'LIMIT +?'))),
      )
    return statement
  }
  /** Returns all rows of a query. */
  all<R>(sql: string, ...values: Bound[]): R[] {
    return this.#prepare(sql).all(...values) as R[]
  }
  /**
   * Iterates over the rows of a query. The caller may stop early. During the iteration the database
   * may only be read.
   */
  each<R>(sql: string, ...values: Bound[]): IterableIterator<R> {
    return this.#prepare(sql).iterate(...values) as IterableIterator<R>
  }
  /**
   * Returns the rows of a query for a page. Reading stops once their JSON exceeds
   * `MAX_PAGE_CHARACTERS`.
   */
  upToPage<R extends object>(sql: string, ...values: Bound[]): R[] {
    const rows: R[] = []
    let left = MAX_PAGE_CHARACTERS
    for (const row of this.each<R>(sql, ...values)) {
      rows.push(row)
      left -= sizeOf(row)
      // The first row that does not fit is included, to show that the page is not the last.
      if (left < 0 && rows.length > 1) break
    }
    return rows
  }
  /** Returns the first row of a query; undefined if the query finds no row. */
  one<R>(sql: string, ...values: Bound[]): R | undefined {
    return this.#prepare(sql).get(...values) as R | undefined
  }
  /** Inserts one row, and returns its number. */
  insert(sql: string, ...values: Bound[]): number {
    return Number(this.#prepare(sql).run(...values).lastInsertRowid)
  }
  /** Executes a statement that changes rows. */
  run(sql: string, ...values: Bound[]): void {
    this.#prepare(sql).run(...values)
  }
  /**
   * Adds a row to an append-only table. Queries see the row after the next `flush`. The values of
   * all columns must be given, in the order of the table's definition.
   */
  append(table: string, ...row: Value[]): void {
    let added = this.#appended.get(table)
    if (!added)
      this.#appended.set(table, (added = { values: [], kept: 0, ...inserts(table, row.length) }))
    for (const value of row) {
      added.values.push(value)
      if (typeof value === 'string') this.#size += value.length
    }
  }
  #writeAppended(): void {
    for (const added of this.#appended.values()) {
      const { values, columns, one, many } = added
      for (let at = 0; at < values.length; ) {
        const several = values.length - at >= columns * ROWS_AT_ONCE
        const end = at + columns * (several ? ROWS_AT_ONCE : 1)
        this.#prepare(several ? many : one).run(values.slice(at, end) as never)
        at = end
      }
      added.values = []
      added.kept = 0
    }
    this.#size = 0
  }
  /**
   * Returns the number of a project. A number is assigned when a project first occurs, and is
   * written by the next `flush`. May be called only while a batch is applied.
   */
  numberOf(project: string): number {
    const known = this.#projects.get(project)
    if (known !== undefined) return known
    const n = this.#projects.size + 1
    this.#projects.set(project, n)
    this.#newProjects.push(project)
    return n
  }
  /** Returns the number of a project. Returns 0, which is no project's number, if it is unknown. */
  findProject(project: string): number {
    return this.#projects.get(project) ?? 0
  }
  /** Allocates the number of a new run. */
  nextRun(): number {
    this.#lastRun ??= this.one<{ n: number | null }>('SELECT max(n) AS n FROM runs')?.n ?? 0
    return ++this.#lastRun
  }
  /** Returns the cache of a table, which is created on first use. */
  cacheOf<V>(table: string, make: (store: Store) => WriteBackCache<V>): WriteBackCache<V> {
    return this.buffer(table, make)
  }
  /**
   * Returns the buffer with this name, which is created on first use. Buffers are flushed in the
   * order of their creation, including those that a flush creates.
   */
  buffer<B extends Buffered>(name: string, make: (store: Store) => B): B {
    let buffer = this.#buffers.get(name) as B | undefined
    if (!buffer) this.#buffers.set(name, (buffer = make(this)))
    return buffer
  }
  /**
   * Accepts the changes of a batch.
   * @param current the cursor up to which everything is applied.
   */
  keep(current: number): void {
    for (const buffer of this.#buffers.values()) buffer.keep()
    for (const added of this.#appended.values()) added.kept = added.values.length
    this.tail.keep(current)
    this.changes.keep(current)
  }
  /**
   * Reverts the changes of a batch that failed before anything was written. Numbers that the batch
   * assigned stay assigned.
   */
  undo(): void {
    for (const buffer of this.#buffers.values()) buffer.undo()
    for (const added of this.#appended.values()) added.values.length = added.kept
    this.tail.undo()
    this.changes.undo()
  }
  /**
   * Writes changes that wait in memory to the tables.
   * @param all whether records that will probably change soon are written too.
   */
  flush(all = true): void {
    for (const project of this.#newProjects)
      this.run('INSERT INTO projects (n, id) VALUES (?, ?)', this.findProject(project), project)
    this.#newProjects = []
    for (const buffer of this.#buffers.values()) buffer.flush(all)
    this.tail.flush((project, seq, frames) => this.append('feed', seq, project, frames))
    this.#writeAppended()
    this.shapes.flush((n, shape) =>
      this.run('INSERT INTO shapes (n, shape) VALUES (?, ?)', n, shape),
    )
  }
  /**
   * Discards all changes that are not written, and all caches.
   * @param current the cursor up to which everything is written.
   */
  forget(current: number): void {
    for (const buffer of this.#buffers.values()) buffer.forget()
    this.#appended.clear()
    this.#size = 0
    this.tail.begin(current)
    this.changes.begin(current)
    this.#lastRun = undefined
    this.#loadNames()
  }
}
