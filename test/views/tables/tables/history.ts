/**
 * Compares the tables of a view with a plain model. The same events change the rows of a store and
 * a map of rows, and both answer the same queries.
 */
import { type JsonObject, timestamp } from '../../../../protocol/common.ts'
import type { PlacedEntry } from '../../../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../../../protocol/errors.ts'
import type { StoredRow, TableEvent } from '../../../../protocol/tables/events.ts'
import {
  compareRows,
  fieldValue,
  planQuery,
  satisfiesCondition,
} from '../../../../protocol/tables/query.ts'
import { visibleData } from '../../../../protocol/tables/row-data.ts'
import type {
  QueryRows,
  SearchRows,
  Table,
  TableRow,
  TableSchema,
} from '../../../../protocol/tables/schema.ts'
import { exactHits, rowTokens, tokensOf } from '../../../../protocol/tables/search.ts'
import { compareTexts } from '../../../../protocol/tables/values.ts'
import type { InParts } from '../../../../views/define-view.ts'
import { openStore } from '../../../../views/files/file.ts'
import type { Page } from '../../../../views/page.ts'
import type { Store } from '../../../../views/store.ts'
import { applyTable, tableFacts } from '../../../../views/tables/tables/changes.ts'
import { TEXT_BYTES } from '../../../../views/tables/tables/keys.ts'
import { maintainTables, needsMaintenance } from '../../../../views/tables/tables/maintenance.ts'
import { queryRows } from '../../../../views/tables/tables/query.ts'
import { searchRows } from '../../../../views/tables/tables/search.ts'
import { applyVectors } from '../../../../views/tables/tables/vectors/apply.ts'
import type { Step } from './arbitraries.ts'

const PROJECT = 'prj_1'
export const TABLE = 'tbl_1'
export const START = Date.UTC(2031, 0, 1)

/** Runs a query to its end and returns its result. Calls `between` between two parts. */
export function whole<R>(parts: InParts<R>, between: () => void = () => undefined): R {
  for (;;) {
    const { done, value } = parts.next()
    if (done) return value
    between()
  }
}

/** Truncates a value as the sort keys of the view do. */
const cut = (value: unknown): unknown =>
  typeof value === 'string' && Buffer.byteLength(value) > TEXT_BYTES
    ? Buffer.from(value).subarray(0, TEXT_BYTES).toString()
    : value

export const notes: TableSchema = {
  identity_column: 'key',
  secondary_key_column: 'second',
  columns: [
    { name: 'key', type: 'string', required: true },
    { name: 'second', type: 'string' },
    { name: 'note', type: 'string' },
  ],
}

export class History {
  readonly store: Store
  /** Id of the table. */
  readonly id: string
  readonly entries: PlacedEntry[] = []
  readonly rows = new Map<string, StoredRow>()
  schema: TableSchema
  change = 0
  #sequence = 0
  #keys = 0

  constructor(schema: TableSchema, id = TABLE, store = openStore(':memory:')) {
    this.schema = schema
    this.id = id
    this.store = store
    const table: Table = {
      id: this.id,
      name: 'alerts',
      schema,
      created_at: timestamp(START),
      updated_at: timestamp(START),
    }
    this.apply({
      type: 'table.created',
      id: this.id,
      table,
      claim: { holder: 'tbn_1', claim: 1 },
    })
  }
  get project(): number {
    return this.store.findProject(PROJECT)
  }
  apply(...events: TableEvent[]): void {
    const place = {
      cursor: ++this.#sequence * 1000,
      entry: {
        project: PROJECT,
        kind: 'table',
        id: this.id,
        command: { id: 'c', name: 'n' },
        origin: { at: START, principal: { type: 'system', id: 'x' } },
        events,
        prev: 0,
      },
    } as unknown as PlacedEntry
    this.entries.push(place)
    applyTo(this.store, place)
  }
  /** Inserts rows as one change. `at`: milliseconds after `START`. */
  insert(at: number, ...data: readonly JsonObject[]): void {
    const time = timestamp(START + at)
    const rows = data.map((one, i) => ({
      // The ids do not follow the order of the rows.
      id: `row_${String((this.change * 7919 + i * 31) % 1009).padStart(4, '0')}_${this.change}_${i}`,
      identity: String(one[this.schema.identity_column]),
      data: visibleData(this.schema, one),
      version: 1,
      created_at: time,
      updated_at: time,
    }))
    for (const row of rows) this.rows.set(row.id, row)
    const shared = { table_name: 'alerts', change: ++this.change }
    const [row] = rows
    this.apply(
      rows.length === 1 && row
        ? { type: 'table.row_inserted', row, ...shared }
        : { type: 'table.rows_inserted', rows, ...shared },
    )
  }
  update(id: string, at: number, data: JsonObject): void {
    const old = this.rows.get(id)
    if (!old) return
    // As in the actor, an update accepts only visible values and keeps hidden values.
    const shown = visibleData(this.schema, old.data)
    const hidden = Object.entries(old.data).filter(([name]) => !Object.hasOwn(shown, name))
    const row = {
      ...old,
      data: { ...Object.fromEntries(hidden), ...visibleData(this.schema, data) },
      identity: String(data[this.schema.identity_column]),
      version: old.version + 1,
      updated_at: timestamp(START + at),
    }
    this.rows.set(id, row)
    this.apply({
      type: 'table.row_updated',
      row,
      changed: [],
      previous: {},
      table_name: 'alerts',
      change: ++this.change,
    })
  }
  delete(id: string): void {
    const row = this.rows.get(id)
    if (!row) return
    this.rows.delete(id)
    this.apply({ type: 'table.row_deleted', row, table_name: 'alerts', change: ++this.change })
  }
  /** Inserts, updates or deletes rows. Other steps change nothing. */
  perform(step: Step): void {
    const ids = [...this.rows.keys()]
    const chosen = 'row' in step ? ids[step.row % ids.length] : undefined
    const keyed = (data: JsonObject): JsonObject => ({ ...data, key: `key${this.#keys++}` })
    if (step.do === 'insert') this.insert(step.at, ...step.rows.map(keyed))
    else if (step.do === 'update' && chosen !== undefined)
      this.update(chosen, step.at, keyed(step.data))
    else if (step.do === 'delete' && chosen !== undefined) this.delete(chosen)
  }
  evolve(schema: TableSchema): void {
    this.schema = schema
    this.apply({ type: 'table.updated', id: this.id, table: { schema }, changes: {} })
  }

  rebuilt(): Store {
    const store = openStore(':memory:')
    for (const place of this.entries) applyTo(store, place)
    return store
  }
  record({ id, data, version, created_at, updated_at }: StoredRow): TableRow {
    return {
      id,
      table_id: this.id,
      data: visibleData(this.schema, data),
      version,
      created_at,
      updated_at,
    }
  }
  /**
   * Returns the rows that a query finds by the rules of the protocol; undefined if the query is not
   * valid.
   */
  expected(query: QueryRows): StoredRow[] | undefined {
    const plan = planQuery(this.schema, query)
    if ('faults' in plan) return undefined
    const shortened = (row: StoredRow): StoredRow => ({
      ...row,
      data: Object.fromEntries(Object.entries(row.data).map(([key, value]) => [key, cut(value)])),
    })
    return [...this.rows.values()]
      .filter((row) =>
        plan.conditions.every((one) =>
          satisfiesCondition(one, fieldValue(this.schema, row, one.field)),
        ),
      )
      .sort((a, b) => compareRows(this.schema, plan.sort, shortened(a), shortened(b)))
  }
  /**
   * Returns the rows that a search finds by the rules of the protocol; undefined if the search is
   * not valid.
   */
  expectedSearch({ query, filter }: SearchRows): StoredRow[] | undefined {
    const tokens = tokensOf(query)
    const filtered = this.expected(filter ? { filter } : {})
    if (tokens.length === 0 || !filtered) return undefined
    const hits = (row: StoredRow) =>
      exactHits(tokens, rowTokens(visibleData(this.schema, row.data)))
    return filtered
      .filter((row) => hits(row) !== undefined)
      .sort(
        (a, b) =>
          (hits(b) ?? 0) - (hits(a) ?? 0) ||
          compareTexts(b.updated_at, a.updated_at) ||
          compareTexts(a.id, b.id),
      )
  }
  query(input: QueryRows & Partial<After>, store = this.store): Page<TableRow> | Refusal {
    return whole(queryRows(store, this.project, { ...input, id: TABLE }))
  }
  search(input: SearchRows & Partial<After>, store = this.store): Page<TableRow> | Refusal {
    return whole(searchRows(store, this.project, { ...input, id: TABLE }))
  }
  facts(identities: readonly string[], row_ids: readonly string[]) {
    return tableFacts(this.store, this.project, { id: this.id, identities, row_ids, content: true })
  }
}
interface After {
  readonly after: NonNullable<Page<unknown>['position']>
}
function applyTo(store: Store, place: PlacedEntry): void {
  applyTable(store, place)
  applyVectors(store, place)
  store.flush()
}
/** Performs pending maintenance, in at most `steps` steps. */
export function tidy(store: Store, steps = 1000): void {
  for (let i = 0; i < steps && needsMaintenance(store); i++) maintainTables(store)
}

/**
 * Reads all pages of a list. `between` is called between two pages, with the number of rows read so
 * far.
 */
export function pages(
  ask: (after: Partial<After>) => Page<TableRow> | Refusal,
  between: (read: number) => void = () => undefined,
): TableRow[] | Refusal {
  const items: TableRow[] = []
  let after: Partial<After> = {}
  for (let i = 0; i < 1000; i++) {
    const page = ask(after)
    if (isRefusal(page)) return page
    items.push(...page.items)
    if (!page.position) return items
    after = { after: page.position }
    between(items.length)
  }
  throw new Error('the pages do not end')
}
