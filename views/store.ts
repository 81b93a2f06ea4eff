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
import { MAX_PAGE_CHARACTERS, sizeOf } from './page.ts'
import { Shapes } from './shapes.ts'
import { ChangeTail } from './tables/changes/tail.ts'
import { FeedTail } from './tables/runs/tail.ts'
import { OrderDemand } from './tables/tables/demand.ts'
import { addDistance, type DistanceEngine } from './tables/tables/vectors/distance.ts'
import type { Buffered, WriteBackCache } from './write-back.ts'

/** A value that SQLite stores. */
export type Value = string | number | null
/** A value that can be bound to a parameter of a statement. */
type Bound = Value | Uint8Array

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
