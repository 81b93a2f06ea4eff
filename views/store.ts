/**
 * Access to a view's database: statements prepared once, and records kept in memory while a batch is applied.
 *
 * S1. Only `View.apply` writes, inside one transaction; `flush` runs before its commit.
 * S2. After a failed transaction `forget` must run, because kept records may hold changes that were rolled back.
 */
import type { Database, Statement } from 'better-sqlite3'

/** A value that SQLite stores. */
export type Value = string | number | null

/** Records read once and written once in a batch, however many events touch them. */
export class Kept<V> {
  readonly #rows = new Map<string, V>()
  readonly #dirty = new Set<string>()
  readonly #load: (key: string) => V | undefined
  readonly #save: (value: V, key: string) => void
  constructor(load: (key: string) => V | undefined, save: (value: V, key: string) => void) {
    this.#load = load
    this.#save = save
  }
  /** @param fresh the caller knows that nothing is stored under this key before the present batch: no look-up is made. */
  get(key: string, fresh = false): V | undefined {
    const kept = this.#rows.get(key)
    if (kept !== undefined || fresh) return kept
    const loaded = this.#load(key)
    if (loaded !== undefined) this.#rows.set(key, loaded)
    return loaded
  }
  set(key: string, value: V): void {
    this.#rows.set(key, value)
    this.#dirty.add(key)
  }
  flush(): void {
    for (const key of this.#dirty) this.#save(this.#rows.get(key) as V, key)
    this.#dirty.clear()
    if (this.#rows.size > KEPT_ROWS) this.#rows.clear()
  }
  forget(): void {
    this.#rows.clear()
    this.#dirty.clear()
  }
}
/** Records kept between batches; beyond, the next batch reads them again. */
const KEPT_ROWS = 8192
/** Rows that one statement adds. */
const ROWS_AT_ONCE = 32

export class Store {
  readonly db: Database
  readonly #statements = new Map<string, Statement<Value[]>>()
  readonly #kept = new Map<string, Kept<never>>()
  readonly #appended = new Map<string, Value[][]>()
  #projects = new Map<string, number>()
  #lastRun: number | undefined
  constructor(db: Database) {
    this.db = db
    this.#loadProjects()
  }
  #loadProjects(): void {
    this.#projects = new Map(this.all<{ id: string; n: number }>('SELECT id, n FROM projects').map(({ id, n }) => [id, n]))
  }
  #prepare(sql: string): Statement<Value[]> {
    let statement = this.#statements.get(sql)
    if (!statement) this.#statements.set(sql, (statement = this.db.prepare<Value[]>(sql)))
    return statement
  }
  /** All rows of a query. */
  all<R>(sql: string, ...values: Value[]): R[] {
    return this.#prepare(sql).all(...values) as R[]
  }
  /** The first row of a query. */
  one<R>(sql: string, ...values: Value[]): R | undefined {
    return this.#prepare(sql).get(...values) as R | undefined
  }
  /** Perform a change. */
  run(sql: string, ...values: Value[]): void {
    this.#prepare(sql).run(...values)
  }
  /** Add a row to a table whose rows are only ever added; it can be read once the batch is applied. Always give all columns. */
  append(table: string, ...row: Value[]): void {
    const rows = this.#appended.get(table)
    if (rows) rows.push(row)
    else this.#appended.set(table, [row])
  }
  #writeAppended(): void {
    for (const [table, rows] of this.#appended) {
      const one = `(${(rows[0] ?? []).map(() => '?').join(', ')})`
      const whole = rows.length - (rows.length % ROWS_AT_ONCE)
      const many = `INSERT INTO ${table} VALUES ${new Array(ROWS_AT_ONCE).fill(one).join(', ')}`
      for (let at = 0; at < whole; at += ROWS_AT_ONCE) this.run(many, ...rows.slice(at, at + ROWS_AT_ONCE).flat())
      for (const row of rows.slice(whole)) this.run(`INSERT INTO ${table} VALUES ${one}`, ...row)
    }
    this.#appended.clear()
  }
  /** The number of a project, given on first sight: only while a batch is applied. */
  numberOf(project: string): number {
    const known = this.#projects.get(project)
    if (known !== undefined) return known
    const n = this.#projects.size + 1
    this.run('INSERT INTO projects (n, id) VALUES (?, ?)', n, project)
    this.#projects.set(project, n)
    return n
  }
  /** The number of a project, or one that no row has. */
  findProject(project: string): number {
    return this.#projects.get(project) ?? 0
  }
  /** A number for a new run. */
  nextRun(): number {
    this.#lastRun ??= this.one<{ n: number | null }>('SELECT max(n) AS n FROM runs')?.n ?? 0
    return ++this.#lastRun
  }
  /** The kept records of one table, made on first use. */
  kept<V>(table: string, make: (store: Store) => Kept<V>): Kept<V> {
    let kept = this.#kept.get(table) as Kept<V> | undefined
    if (!kept) this.#kept.set(table, (kept = make(this)) as unknown as Kept<never>)
    return kept
  }
  /** Write what the batch changed. */
  flush(): void {
    for (const kept of this.#kept.values()) kept.flush()
    this.#writeAppended()
  }
  /** Drop everything kept. */
  forget(): void {
    for (const kept of this.#kept.values()) kept.forget()
    this.#appended.clear()
    this.#lastRun = undefined
    this.#loadProjects()
  }
}
