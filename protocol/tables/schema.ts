/**
 * Schemas and limits of tables. A table has typed columns and rows. Each row has an identity, the
 * value of the table's identity column, which is unique in the table. The published contract
 * defines the records.
 */
import { type Static, Type } from 'typebox'
import { Closed, JsonObject, Tags, Timestamp } from '../common.ts'

/**
 * Limits of tables and rows. `columns`: number of columns of a table. `batch`: number of rows in
 * one bulk insert. `rows`: number of rows of a table, by default. `sorts`: number of sort fields in
 * a query. `alternatives`: number of values in `$in`. `identity`: size in bytes as UTF-8. `row`,
 * `bulk` and `schema`: size of the JSON in bytes as UTF-8. The others are lengths in characters.
 */
export const tableLimits = {
  name: 64,
  description: 1000,
  instructions: 2000,
  columns: 200,
  columnDescription: 1000,
  identity: 512,
  schema: 262_144,
  row: 262_144,
  bulk: 8_388_608,
  batch: 1000,
  rows: 1_000_000,
  sorts: 10,
  alternatives: 200,
  search: 1000,
} as const

export const ColumnType = Type.Enum([
  'string',
  'number',
  'boolean',
  'date',
  'object',
  'array',
  'any',
])
export type ColumnType = Static<typeof ColumnType>
/** Pattern of the names of columns. */
export const COLUMN_NAME = '^[A-Za-z_][A-Za-z0-9_]{0,63}$'
export const Column = Closed({
  name: Type.String({ pattern: COLUMN_NAME }),
  type: ColumnType,
  required: Type.Optional(Type.Boolean()),
  default: Type.Optional(Type.Unknown()),
  description: Type.Optional(Type.String({ maxLength: tableLimits.columnDescription })),
  deprecated: Type.Optional(Type.Boolean()),
  indexed: Type.Optional(Type.Boolean({ description: 'Deprecated hint without effect' })),
})
export type Column = Static<typeof Column>
export const TableIndex = Closed({ name: Type.String(), columns: Type.Array(Type.String()) })
export const TableSchema = Closed({
  columns: Type.Array(Column, { minItems: 1, maxItems: tableLimits.columns }),
  identity_column: Type.String(),
  secondary_key_column: Type.Optional(Type.String()),
  open: Type.Optional(Type.Boolean({ description: 'Whether rows may contain undeclared columns' })),
  indexes: Type.Optional(
    Type.Array(TableIndex, {
      maxItems: 20,
      description: 'Deprecated: stored, without effect',
    }),
  ),
})
export type TableSchema = Static<typeof TableSchema>

export const TableName = Type.String({
  pattern: '^[a-z][a-z0-9_]*$',
  minLength: 1,
  maxLength: tableLimits.name,
})
const Description = Type.String({ maxLength: tableLimits.description })
const Instructions = Type.String({ maxLength: tableLimits.instructions })

export const Table = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.Optional(Type.String()),
  instructions: Type.Optional(
    Type.String({ description: 'Instructions for agents that use the table' }),
  ),
  schema: TableSchema,
  tags: Type.Optional(Tags),
  created_by: Type.Optional(Type.String()),
  updated_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Table = Static<typeof Table>
export const CreateTable = Closed({
  name: TableName,
  description: Type.Optional(Description),
  instructions: Type.Optional(Instructions),
  schema: TableSchema,
})
export type CreateTable = Static<typeof CreateTable>
export const UpdateTable = Closed({
  name: Type.Optional(TableName),
  description: Type.Optional(Description),
  instructions: Type.Optional(Instructions),
  schema: Type.Optional(TableSchema),
  tags: Type.Optional(Tags),
})
export type UpdateTable = Static<typeof UpdateTable>

export const TableStats = Type.Object({
  table_id: Type.String(),
  row_count: Type.Integer(),
  approx_data_bytes: Type.Integer(),
  approx_index_bytes: Type.Integer(),
  indexed_column_count: Type.Integer({
    description: 'Number of indexed columns: 1 with a secondary key column, otherwise 0',
  }),
  declared_index_count: Type.Integer(),
  search_index_present: Type.Boolean(),
  generated_at: Timestamp,
  oldest_row_created_at: Type.Optional(Timestamp),
  newest_row_updated_at: Type.Optional(Timestamp),
})
export type TableStats = Static<typeof TableStats>

export const TableRow = Type.Object({
  id: Type.String(),
  table_id: Type.String(),
  data: JsonObject,
  version: Type.Integer({ minimum: 1 }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type TableRow = Static<typeof TableRow>
export const RowData = Closed({ data: JsonObject })
export const UpdateRow = Closed({
  data: JsonObject,
  version: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Expected version of the row; not checked if absent or 0',
    }),
  ),
})
export const BulkRows = Closed({
  rows: Type.Array(JsonObject, { minItems: 1, maxItems: tableLimits.batch }),
})
const Filter = Type.Record(Type.String({ pattern: '^[\\s\\S]*$' }), Type.Unknown())
const paging = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 20 })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 16_384 })),
}
export const QueryRows = Closed({
  filter: Type.Optional(Filter),
  sort: Type.Optional(
    Type.Array(Closed({ field: Type.String(), order: Type.Optional(Type.Enum(['asc', 'desc'])) }), {
      maxItems: tableLimits.sorts,
    }),
  ),
  ...paging,
})
export type QueryRows = Static<typeof QueryRows>
export const SearchRows = Closed({
  query: Type.String({ minLength: 1, maxLength: tableLimits.search }),
  mode: Type.Optional(Type.Enum(['keyword', 'semantic', 'hybrid'])),
  filter: Type.Optional(Filter),
  ...paging,
})
export type SearchRows = Static<typeof SearchRows>
export const RowPage = Type.Object({
  items: Type.Array(TableRow),
  has_more: Type.Boolean(),
  limit: Type.Integer(),
  next_cursor: Type.Optional(Type.String()),
})
