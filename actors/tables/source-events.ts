/** Source events of a table: one for each row that is inserted, updated or deleted, in order. */
import type { JsonObject } from '../../protocol/common.ts'
import type { Address } from '../../protocol/entry.ts'
import type { Causation, ServicePublication } from '../../protocol/events/sources.ts'
import type { StoredRow, TableEvent } from '../../protocol/tables/events.ts'
import type { Effect } from '../actor.ts'
import { reduced } from '../events/reduced.ts'

type On<N extends TableEvent['type']> = Extract<TableEvent, { type: N }>
type Verb = 'inserted' | 'updated' | 'deleted'

/**
 * Publishes the change of a row.
 * @param shown the data as readers see it.
 * @param causation that of the change.
 * @param more further members of the payload.
 */
function publish(
  verb: Verb,
  { project, id: table_id }: Address,
  table_name: string,
  { id: row_id, version, created_at, updated_at }: StoredRow,
  shown: JsonObject,
  causation: Causation = { depth: 0 },
  more: JsonObject = {},
): Effect {
  const meta = { table_id, table_name, row_id }
  const input: ServicePublication = {
    event_type: `table.row.${verb}`,
    source_kind: 'table_row',
    source_id: row_id,
    event: { ...meta, data: shown, version, ...more },
    meta,
    record: reduced({
      id: row_id,
      table_id,
      table_name,
      data: shown,
      version,
      created_at,
      updated_at,
    }),
    ...causation,
  }
  return { tell: { to: { kind: 'events', id: project }, name: 'source.publish', input } }
}
export const tellInserted = (
  { table_name, row, causation }: On<'table.row_inserted'>,
  self: Address,
): readonly Effect[] => [publish('inserted', self, table_name, row, row.data, causation)]
export const tellAllInserted = (
  { table_name, rows, causation }: On<'table.rows_inserted'>,
  self: Address,
): readonly Effect[] =>
  rows.map((row) => publish('inserted', self, table_name, row, row.data, causation))
export const tellUpdated = (
  { table_name, row, shown = row.data, changed, previous, causation }: On<'table.row_updated'>,
  self: Address,
): readonly Effect[] => [
  publish('updated', self, table_name, row, shown, causation, { changed, previous }),
]
export const tellDeleted = (
  { table_name, row, shown = row.data, causation }: On<'table.row_deleted'>,
  self: Address,
): readonly Effect[] => [publish('deleted', self, table_name, row, shown, causation)]
