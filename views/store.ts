/**
 * Access to a view's database: statements are prepared once, and changes are held in memory until
 * they are written together.
 *
 * S1. Rows change only inside a transaction that `View` begins. Before `View` commits a new
 *     position, it writes the changes in memory by `flush`.
 * S2. A batch ends with `keep`. If it fails before anything was written to the tables, it ends with
 *     `undo`, which reverts its changes in memory.
 * S3. After a rollback, `forget` must run, because cached records may hold changes that were rolled
 *     back.
 */

import type { Database, Statement } from 'better-sqlite3'
import { CHARACTERS, sizeOf } from './page.ts'
import { FeedTail } from './tables/runs/tail.ts'
import { OrderDemand } from './tables/tables/demand.ts'
import { addDistance, type DistanceEngine } from './tables/tables/vectors/distance.ts'

/** A value that SQLite stores. */
export type Value = string | number | null
/** A value with which a statement can be executed. */
type Bound = Value | Uint8Array

/**
 * A write-back cache of one table. Between two flushes, a record is loaded at most once and written
 * at most once, regardless of how many events change it. Events replace a value and never mutate
 * it, so that `undo` can restore the previous value.
 */
export class Kept<V> {
  readonly #rows = new Map<string, V>()
  readonly #dirty = new Set<string>()
  /** The values that the current batch replaced; undefined for keys that it added. */
  readonly #before = new Map<string, V | undefined>()
  readonly #load: (key: string) => V | undefined
  readonly #save: (value: V, key: string) => void
  readonly #most: number
  /**
   * @param most maximum number of records that stay cached after a flush; if there are more, the
   * cache is cleared.
   */
  constructor(
    load: (key: string) => V | undefined,
    save: (value: V, key: string) => void,
    most = KEPT_ROWS,
  ) {
    this.#load = load
    this.#save = save
    this.#most = most
  }
  /**
   * Returns the value of a key. The value is loaded if it is not cached.
   * @param fresh whether the caller is certain that the table has no such key; nothing is loaded
   * then.
   */
  get(key: string, fresh = false): V | undefined {
    const kept = this.#rows.get(key)
    if (kept !== undefined || fresh) return kept
    const loaded = this.#load(key)
    if (loaded !== undefined) this.#rows.set(key, loaded)
    return loaded
  }
  /** Returns the value if it is cached; nothing is loaded. */
  peek(key: string): V | undefined {
    return this.#rows.get(key)
  }
  set(key: string, value: V): void {
    if (!this.#before.has(key)) this.#before.set(key, this.#rows.get(key))
    this.#rows.set(key, value)
    this.#dirty.add(key)
  }
  flush(): void {
    for (const key of this.#dirty) this.#save(this.#rows.get(key) as V, key)
    this.#dirty.clear()
    if (this.#rows.size > this.#most) this.#rows.clear()
  }
  keep(): void {
    this.#before.clear()
  }
  undo(): void {
    for (const [key, value] of this.#before) {
      if (value !== undefined) this.#rows.set(key, value)
      else if (this.#rows.delete(key)) this.#dirty.delete(key)
    }
    this.#before.clear()
  }
  forget(): void {
    this.#rows.clear()
    this.#dirty.clear()
    this.#before.clear()
  }
}
/** Default maximum number of cached records of a table. */
const KEPT_ROWS = 8192
/** Number of rows that one multi-row INSERT writes. */
const ROWS_AT_ONCE = 32

/**
 * Rows that wait to be inserted into a table, and the statements that insert one row or
 * `ROWS_AT_ONCE` rows. The first `kept` rows belong to batches that `keep` has accepted.
 */
interface Appended {
  rows: Value[][]
  kept: number
  readonly one: string
  readonly many: string
}
function inserts(table: string, columns: number): { one: string; many: string } {
  const row = `(${new Array(columns).fill('?').join(', ')})`
  const sql = `INSERT INTO ${table} VALUES `
  return { one: sql + row, many: sql + new Array(ROWS_AT_ONCE).fill(row).join(', ') }
}

export class Store {
  readonly db: Database
  /** The engine that computes the distances of vectors. */
  readonly distances: DistanceEngine
  readonly #statements = new Map<string, Statement<Bound[]>>()
  readonly #kept = new Map<string, Kept<never>>()
  readonly #appended = new Map<string, Appended>()
  /** The newest frames of the feed, in memory. */
  readonly tail = new FeedTail()
  /** The orders of tables that queries need. */
  readonly demand = new OrderDemand()
  #projects = new Map<string, number>()
  #newProjects: string[] = []
  #lastRun: number | undefined
  #size = 0
  constructor(db: Database) {
    this.db = db
    this.distances = addDistance(db)
    this.#loadProjects()
  }
  /** The number of characters in the appended rows that wait to be written. */
  get size(): number {
    return this.#size
  }
  /** The number of appended rows that wait to be written. */
  get rows(): number {
    let rows = 0
    for (const added of this.#appended.values()) rows += added.rows.length
    return rows
  }
  #loadProjects(): void {
    this.#newProjects = []
    this.#projects = new Map(
      this.all<{ id: string; n: number }>('SELECT id, n FROM projects').map(({ id, n }) => [id, n]),
    )
  }
  #prepare(sql: string): Statement<Bound[]> {
    let statement = this.#statements.get(sql)
    if (!statement) this.#statements.set(sql, (statement = this.db.prepare<Bound[]>(sql)))
    return statement
  }
  /** Returns all rows of a query. */
  all<R>(sql: string, ...values: Bound[]): R[] {
    return this.#prepare(sql).all(...values) as R[]
  }
  /**
   * Iterates over the rows of a query; the caller may stop early. During the iteration the database
   * may only be read.
   */
  each<R>(sql: string, ...values: Bound[]): IterableIterator<R> {
    return this.#prepare(sql).iterate(...values) as IterableIterator<R>
  }
  /** Returns the rows of a query for a page. Reading stops once their JSON exceeds `CHARACTERS`. */
  upToPage<R extends object>(sql: string, ...values: Bound[]): R[] {
    const rows: R[] = []
    let left = CHARACTERS
    for (const row of this.each<R>(sql, ...values)) {
      rows.push(row)
      left -= sizeOf(row)
      // The first row that does not fit is included, to show that the page is not the last.
      if (left < 0 && rows.length > 1) break
    }
    return rows
  }
  /** Returns the first row of a query. */
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
      this.#appended.set(table, (added = { rows: [], kept: 0, ...inserts(table, row.length) }))
    added.rows.push(row)
    for (const value of row) if (typeof value === 'string') this.#size += value.length
  }
  #writeAppended(): void {
    for (const added of this.#appended.values()) {
      const { rows, one, many } = added
      const whole = rows.length - (rows.length % ROWS_AT_ONCE)
      for (let at = 0; at < whole; at += ROWS_AT_ONCE)
        this.#prepare(many).run(rows.slice(at, at + ROWS_AT_ONCE).flat() as never)
      for (const row of rows.slice(whole)) this.#prepare(one).run(row as never)
      added.rows = []
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
  /** Returns the number of a project; 0, which no row has, if the project is unknown. */
  findProject(project: string): number {
    return this.#projects.get(project) ?? 0
  }
  /** Allocates the number of a new run. */
  nextRun(): number {
    this.#lastRun ??= this.one<{ n: number | null }>('SELECT max(n) AS n FROM runs')?.n ?? 0
    return ++this.#lastRun
  }
  /** Returns the cache of a table, which is created on first use. */
  kept<V>(table: string, make: (store: Store) => Kept<V>): Kept<V> {
    let kept = this.#kept.get(table) as Kept<V> | undefined
    if (!kept) this.#kept.set(table, (kept = make(this)) as unknown as Kept<never>)
    return kept
  }
  /**
   * Accepts the changes of a batch.
   * @param current the cursor up to which everything is applied.
   */
  keep(current: number): void {
    for (const kept of this.#kept.values()) kept.keep()
    for (const added of this.#appended.values()) added.kept = added.rows.length
    this.tail.keep(current)
  }
  /**
   * Reverts the changes of a batch that failed before anything was written. Numbers that it
   * assigned stay assigned.
   */
  undo(): void {
    for (const kept of this.#kept.values()) kept.undo()
    for (const added of this.#appended.values()) added.rows.length = added.kept
    this.tail.undo()
  }
  /** Writes to the tables all changes that wait in memory. */
  flush(): void {
    for (const project of this.#newProjects)
      this.run('INSERT INTO projects (n, id) VALUES (?, ?)', this.findProject(project), project)
    this.#newProjects = []
    for (const kept of this.#kept.values()) kept.flush()
    this.tail.flush((project, seq, frames) => this.append('feed', project, seq, frames))
    this.#writeAppended()
  }
  /**
   * Discards all changes that are not written, and all caches.
   * @param current the cursor up to which everything is written.
   */
  forget(current: number): void {
    for (const kept of this.#kept.values()) kept.forget()
    this.#appended.clear()
    this.#size = 0
    this.tail.begin(current)
    this.#lastRun = undefined
    this.#loadProjects()
  }
}
