/**
 * Keeps the vectors of semantically searched tables, and the queue of rows to embed, up to date
 * with the events of these tables.
 */
import type { Event, PlacedEntry } from '../../../../protocol/entry.ts'
import type { TableEvent } from '../../../../protocol/tables/events.ts'
import type { Store } from '../../../store.ts'
import { definitionCache } from '../definitions.ts'
import { dropIndex, forgetRow, indexOf, queueRow, requeueAll } from './indexes.ts'

/** Applies an entry of a table. The rows of the table must already reflect the entry. */
export function applyVectors(store: Store, { entry }: PlacedEntry): void {
  const table = definitionCache(store).get(entry.id)?.n
  if (table === undefined || !indexOf(store, table)) return
  for (const any of entry.events as readonly Event[]) {
    const event = any as TableEvent
    if (event.type === 'table.deleted') dropIndex(store, table)
    else if (event.type === 'table.updated' && 'schema' in event.table) requeueAll(store, table)
    else if (event.type === 'table.row_deleted') forgetRow(store, table, event.row.id)
    else if (event.type === 'table.rows_inserted')
      for (const { id } of event.rows) queueRow(store, table, id, event.change)
    else if ('change' in event) queueRow(store, table, event.row.id, event.change)
  }
}
