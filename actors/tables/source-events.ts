/** Source events of a table: one for each row that is inserted, updated or deleted, in order. */
import type { JsonObject } from '../../protocol/common.ts'
import type { Address } from '../../protocol/entry.ts'
import type {
  Causation,
  RootPublication,
  ServicePublication,
} from '../../protocol/events/sources.ts'
import type { StoredRow, TableEvent } from '../../protocol/tables/events.ts'
import type { Effect } from '../actor.ts'

type On<N extends TableEvent['type']> = Extract<TableEvent, { type: N }>
type Verb = 'inserted' | 'updated' | 'deleted'

/**
 * Maximum number of events that one command publishes, and approximate maximum of their total
 * length in characters. An envelope has at most 1000 events, and an entry above 256 KiB is stored
 * outside the journal.
 */
const GROUP = { rows: 250, length: 163_840 } as const
/** Estimated number of characters of an event in addition to the data of its row. */
const EVENT_LENGTH = 480

/**
 * Divides the rows of an insertion into groups that are published together.
 * @param lengths the length of the data of each row, in characters of JSON.
 * @returns the number of rows of each group, in order.
 */
export function groupsOf(lengths: readonly number[]): number[] {
  const groups: number[] = []
  let rows = 0
  let length = 0
  for (const own of lengths) {
    if (rows > 0 && (rows === GROUP.rows || length + own + EVENT_LENGTH > GROUP.length)) {
      groups.push(rows)
      rows = length = 0
    }
    rows++
    length += own + EVENT_LENGTH
  }
  return rows > 0 ? [...groups, rows] : groups
}

/** The table of a changed row, as the payload of its event names it. */
interface TableNames {
  readonly table_id: string
  readonly table_name: string
}
/**
 * Returns the publication for a changed row.
 * @param shown the data as readers see it.
 * @param more additional members of the payload.
 */
function publicationOf(
  verb: Verb,
  table: TableNames,
  { id, version, created_at, updated_at }: StoredRow,
  shown: JsonObject,
  more: JsonObject = {},
): Omit<RootPublication & ServicePublication, 'depth'> {
  const meta = { ...table, row_id: id }
  return {
    event_type: `table.row.${verb}`,
    source_kind: 'table_row',
    source_id: id,
    event: { ...meta, data: shown, version, ...more },
    meta,
    // The other fields of the record are already in the payload.
    record: { id, created_at, updated_at },
  }
}
const ROOT: Causation = { depth: 0 }
/**
 * Returns the effect that publishes a source event.
 * @param causation the causation of the change; by default, that of a change that no run caused.
 */
const publish = (
  { project }: Address,
  publication: Omit<ServicePublication, 'depth'>,
  causation: Causation = ROOT,
): Effect => {
  const input: ServicePublication = { ...publication, ...causation }
  return { tell: { to: { kind: 'events', id: project }, name: 'source.publish', input } }
}
const inserted = (table: TableNames, row: StoredRow) =>
  publicationOf('inserted', table, row, row.data)

export const tellInserted = (
  { table_name, row, causation }: On<'table.row_inserted'>,
  self: Address,
): readonly Effect[] => [publish(self, inserted({ table_id: self.id, table_name }, row), causation)]
export function tellAllInserted(
  { table_name, rows, groups, causation }: On<'table.rows_inserted'>,
  self: Address,
): readonly Effect[] {
  const table = { table_id: self.id, table_name }
  const publications = rows.map((row) => inserted(table, row))
  if (!groups || causation) return publications.map((one) => publish(self, one, causation))
  let from = 0
  return groups.map((count): Effect => {
    const input = {
      publications: publications.slice(from, from + count).map((one) => ({ ...one, ...ROOT })),
    }
    from += count
    return {
      tell: { to: { kind: 'events', id: self.project }, name: 'source.publish_all', input },
    }
  })
}
export const tellUpdated = (
  { table_name, row, shown = row.data, changed, previous, causation }: On<'table.row_updated'>,
  self: Address,
): readonly Effect[] => [
  publish(
    self,
    publicationOf('updated', { table_id: self.id, table_name }, row, shown, {
      changed,
      previous,
    }),
    causation,
  ),
]
export const tellDeleted = (
  { table_name, row, shown = row.data, causation }: On<'table.row_deleted'>,
  self: Address,
): readonly Effect[] => [
  publish(self, publicationOf('deleted', { table_id: self.id, table_name }, row, shown), causation),
]
