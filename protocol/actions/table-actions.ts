/**
 * The built-in actions on the rows of tables, for agents and for steps of workflows. Each is
 * equivalent to an endpoint: it needs the same permission and returns the same body. The names of
 * the actions differ from those of the endpoints, because the published contract defines them.
 */
import type { JsonObject } from '../common.ts'
import { tables } from '../tables/rows.ts'
import { tableLimits } from '../tables/schema.ts'
import { object, text } from './parameters.ts'

/** A built-in action on tables, without its name. */
export interface TableAction {
  readonly title: string
  readonly description: string
  readonly input_schema: JsonObject
  /**
   * `idempotent`: a repeat of a call, for example after the loss of an executor, has no further
   * effect.
   */
  readonly annotations: {
    readonly idempotent: true
    readonly read_only?: true
    readonly destructive?: true
  }
  /** The permission of the endpoint with the same effect. */
  readonly permission: string
}

const withTable = (properties: JsonObject, required: readonly string[]): JsonObject =>
  object({ table: text(100, { description: 'Name or id of the table' }), ...properties }, [
    'table',
    ...required,
  ])
const filter: JsonObject = {
  type: 'object',
  description:
    'Conditions by column, all of which must hold: a value, or operators: $eq, $ne, $gt, $gte, ' +
    '$lt, $lte, $in (an array), $exists (a boolean)',
}
const paging: JsonObject = {
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: 200,
    description: 'Maximum number of rows; 20 by default',
  },
  cursor: text(16_384, { description: 'The next_cursor of the previous page' }),
}
const data: JsonObject = {
  type: 'object',
  description: 'Values by column; null means that a column has no value',
}

/** The actions, by name without the brand. */
export const tableActions = {
  'table.query': {
    title: 'Query a table',
    description: 'Read the rows of a table that match a filter, sorted, one page at a time.',
    input_schema: withTable(
      {
        filter,
        sort: {
          type: 'array',
          maxItems: tableLimits.sorts,
          items: {
            type: 'object',
            properties: {
              field: { type: 'string' },
              order: { type: 'string', enum: ['asc', 'desc'] },
            },
            required: ['field'],
            additionalProperties: false,
          },
        },
        ...paging,
      },
      [],
    ),
    annotations: { idempotent: true, read_only: true },
    permission: tables['table.query'].shape.permission,
  },
  'table.search': {
    title: 'Search a table',
    description:
      'Find the rows of a table that contain all words of a query, or words that begin with them.',
    input_schema: withTable(
      {
        query: text(tableLimits.search, { description: 'Words to search for' }),
        mode: { type: 'string', enum: ['keyword', 'semantic', 'hybrid'] },
        filter,
        ...paging,
      },
      ['query'],
    ),
    annotations: { idempotent: true, read_only: true },
    permission: tables['table.search'].shape.permission,
  },
  'table.insert': {
    title: 'Insert a row',
    description: 'Insert a row into a table. It fails if a row with its identity exists.',
    input_schema: withTable({ data }, ['data']),
    annotations: { idempotent: true },
    permission: tables['row.insert'].shape.permission,
  },
  'table.upsert': {
    title: 'Insert or change a row',
    description:
      'Insert a row into a table, or change the given columns of the row with the same identity.',
    input_schema: withTable({ data }, ['data']),
    annotations: { idempotent: true },
    permission: tables['row.upsert'].shape.permission,
  },
  'table.delete': {
    title: 'Delete a row',
    description: 'Delete a row of a table.',
    input_schema: withTable(
      { row_id: text(100, { description: 'The id of the row, not its identity' }) },
      ['row_id'],
    ),
    annotations: { idempotent: true, destructive: true },
    permission: tables['row.delete'].shape.permission,
  },
} satisfies Readonly<Record<string, TableAction>>
