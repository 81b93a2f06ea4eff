/** A table and its rows, for the tests in this folder. */
import type { AnyActor } from '../../../actors/actor.ts'
import { defineActor } from '../../../actors/actor.ts'
import type { TableState } from '../../../actors/tables/state.ts'
import { tableActor } from '../../../actors/tables/table.ts'
import type { WindowBounds } from '../../../actors/tables/window.ts'
import type { RowFact, StoredRow, TableFacts } from '../../../protocol/tables/events.ts'
import type { TableSchema } from '../../../protocol/tables/schema.ts'
import { given, type Scene } from '../../support/given.ts'

export const actor = (limits: { table_rows?: number; window?: WindowBounds } = {}): AnyActor =>
  defineActor(tableActor({ brand: 'Test', ...limits }))
export const schema: TableSchema = {
  columns: [
    { name: 'key', type: 'string', required: true },
    { name: 'title', type: 'string' },
    { name: 'count', type: 'number', default: 0 },
  ],
  identity_column: 'key',
}
export const claim = { holder: 'tbn_tickets', claim: 1 }
export const fresh = (table_rows?: number): Scene<TableState> =>
  given<TableState>(actor(table_rows === undefined ? {} : { table_rows }))
export const created = (change: object = {}, table_rows?: number) =>
  fresh(table_rows).when('table.create', { name: 'tickets', schema, claim, ...change })

/** Returns facts as of change `through`; by default, the facts of a view without rows. */
export const facts = (through = 0, ...rows: RowFact[]): TableFacts => ({ through, rows })
export function rowsAfter(history: readonly object[]): Map<string, StoredRow> {
  const rows = new Map<string, StoredRow>()
  for (const event of history as {
    type: string
    row?: StoredRow
    rows?: StoredRow[]
  }[]) {
    if (event.type === 'table.row_deleted') rows.delete(event.row?.id ?? '')
    else for (const row of event.rows ?? (event.row ? [event.row] : [])) rows.set(row.id, row)
  }
  return rows
}
