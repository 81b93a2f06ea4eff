/**
 * The endpoints for tables and for the rows of tables. The published contract leaves these points
 * open, and this service decides them as follows:
 * - A value of null in a new row means that the column has no value, and suppresses its default.
 * - A range operator on a field of type `any` compares values in the order in which the field is
 *   sorted.
 * - A stored value that does not fit the current schema is hidden from readers and queries.
 * - An empty description, empty instructions or an empty list of tags removes the field.
 */
import { Type } from 'typebox'
import { Closed, pageOf, paging } from '../common.ts'
import { command, query } from '../contract.ts'
import { schemaFaults } from './definition.ts'
import {
  BulkRows,
  CreateTable,
  QueryRows,
  RowData,
  RowPage,
  SearchRows,
  Table,
  TableName,
  TableRow,
  TableStats,
  tableLimits,
  UpdateRow,
  UpdateTable,
} from './schema.ts'

const checkSchema = ({ schema }: UpdateTable) => (schema ? schemaFaults(schema) : [])

const Upserted = Type.Object({ row: TableRow, created: Type.Boolean() })
const BulkInserted = Type.Object({ inserted: Type.Integer(), items: Type.Array(TableRow) })

const P = '/projects/:project/tables'
const T = `${P}/:id` as const
const R = `${T}/rows/:row_id` as const
const tag = 'tables'
const read = { tag, permission: 'project.view' } as const
const write = {
  tag,
  permission: 'project.edit',
  to: { kind: 'table', slot: 'id', prefix: 'table' },
} as const

const upsertShape = {
  ...write,
  summary: 'Insert a row, or change the row with the same identity',
  body: RowData,
  reply: Upserted,
  status: 200,
  alsoStatus: [201],
  errors: ['not_found', 'conflict'],
} as const
const bulkShape = {
  ...write,
  summary: 'Insert up to 1000 rows, all of them or none',
  body: BulkRows,
  limit: tableLimits.bulk,
  reply: BulkInserted,
  status: 201,
  errors: ['not_found', 'already_exists', 'conflict'],
} as const
const queryShape = {
  ...read,
  summary: 'Rows that match all conditions of a filter, sorted',
  body: QueryRows,
  bodyOptional: true,
  reply: RowPage,
  errors: ['not_found'],
} as const
const searchShape = {
  ...read,
  summary: 'Rows that contain all words of a query, or words that begin with them',
  body: SearchRows,
  reply: RowPage,
  errors: ['not_found', 'table_semantic_search_unavailable'],
} as const

export const tables = {
  'table.list': query(`GET ${P}`, {
    ...read,
    summary: 'Tables, newest first',
    query: Closed({ name: Type.Optional(TableName), ...paging }),
    reply: pageOf(Table),
  }),
  'table.create': command(`POST ${P}`, {
    summary: 'Create a table',
    tag,
    permission: 'project.edit',
    to: { kind: 'table', mint: 'table' },
    body: CreateTable,
    check: checkSchema,
    reply: Table,
    status: 201,
    errors: ['already_exists'],
  }),
  'table.get': query(`GET ${T}`, {
    ...read,
    summary: 'One table',
    reply: Table,
    errors: ['not_found'],
  }),
  'table.update': command(`PATCH ${T}`, {
    ...write,
    summary: 'Rename a table, or change its description, instructions, tags or schema',
    body: UpdateTable,
    check: checkSchema,
    reply: Table,
    errors: ['not_found', 'already_exists', 'table_schema_immutable'],
  }),
  'table.delete': command(`DELETE ${T}`, {
    ...write,
    permission: 'project.admin',
    summary: 'Delete a table with its rows',
    status: 204,
    errors: ['not_found'],
  }),
  'table.stats': query(`GET ${T}/stats`, {
    ...read,
    summary: 'The number and size of the rows of a table',
    reply: TableStats,
    errors: ['not_found'],
  }),
  'row.insert': command(`POST ${T}/rows`, {
    ...write,
    summary: 'Insert a row',
    body: RowData,
    reply: TableRow,
    status: 201,
    errors: ['not_found', 'already_exists', 'conflict'],
  }),
  'row.get': query(`GET ${R}`, {
    ...read,
    summary: 'One row',
    reply: TableRow,
    errors: ['not_found'],
  }),
  'row.update': command(`PATCH ${R}`, {
    ...write,
    summary: 'Change columns of a row; null removes a value',
    body: UpdateRow,
    reply: TableRow,
    errors: ['not_found', 'already_exists', 'conflict'],
  }),
  'row.delete': command(`DELETE ${R}`, {
    ...write,
    summary: 'Delete a row',
    status: 204,
    errors: ['not_found'],
  }),
  'row.upsert': command(`POST ${T}/upsert`, upsertShape),
  'row.bulk': command(`POST ${T}/bulk`, bulkShape),
  'table.query': query(`POST ${T}/query`, queryShape),
  'table.search': query(`POST ${T}/search`, searchShape),

  // Alternative paths of the operations above, for existing clients.
  'row.query': query(`POST ${T}/rows/query`, {
    ...queryShape,
    tag: 'compat',
    alias: 'table.query',
    as: 'table.query',
  }),
  'row.search': query(`POST ${T}/rows/search`, {
    ...searchShape,
    tag: 'compat',
    alias: 'table.search',
    as: 'table.search',
  }),
  'row.upsert_at_rows': command(`POST ${T}/rows/upsert`, {
    ...upsertShape,
    tag: 'compat',
    alias: 'row.upsert',
    as: 'row.upsert',
  }),
  'row.bulk_at_rows': command(`POST ${T}/rows/bulk`, {
    ...bulkShape,
    tag: 'compat',
    alias: 'row.bulk',
    as: 'row.bulk',
  }),
} as const
export type TableRows = typeof tables
