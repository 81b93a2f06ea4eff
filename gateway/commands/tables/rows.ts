/**
 * Prepares commands about rows for the endpoints and for the built-in actions on tables. The
 * preparation adds facts to a command, repeats the command if the facts were too old, and completes
 * the reply, which lacks the data that the client sent.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { CommandReply } from '../../../protocol/queries/commands.ts'
import {
  type Inserted,
  isStale,
  type StaleReply,
  type TableFacts,
  type Updated,
} from '../../../protocol/tables/events.ts'
import { insertedData } from '../../../protocol/tables/row-data.ts'
import type { TableRow } from '../../../protocol/tables/schema.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import type { Identity } from '../../http/idempotency.ts'
import { andThen, type MaybePromise } from '../../maybe-promise.ts'
import type { Prepare } from '../../prepare.ts'
import type { Revise } from '../decide.ts'
import { identityColumn, type RowsAsked, readFacts, type TableAt } from './facts.ts'

/** A prepared command about rows. */
export interface RowChange<R> {
  readonly input: { readonly facts: TableFacts }
  readonly revise: Revise
  /** Converts the reply of the table to the response. */
  readonly answer: (reply: unknown) => MaybePromise<R | Refusal>
}
type Changes<R> = Promise<RowChange<R> | Refusal>

type RowCommand = 'row.insert' | 'row.bulk' | 'row.upsert' | 'row.update' | 'row.delete'
type Finished<N extends RowCommand> = Exclude<CommandReply<'table', N>, StaleReply>

/**
 * Adds facts to a command, and repeats it with later facts while the table requests them. After
 * `settings.deadline`, the call is refused with `overdue`.
 */
async function withFacts<N extends RowCommand, R>(
  at: TableAt,
  asked: RowsAsked,
  answer: (reply: Finished<N>) => MaybePromise<R | Refusal>,
  overdue: Refusal = refuse('service_unavailable', { retry_after: 1 }),
): Changes<R> {
  const { world } = at
  const facts = await readFacts(at, asked, false)
  if (isRefusal(facts)) return facts
  const until = world.monotonic() + world.settings.deadline
  return {
    input: { facts },
    revise: async (outcome) => {
      if (isRefusal(outcome) || !isStale(outcome.reply)) return undefined
      if (world.monotonic() >= until) return overdue
      const later = await readFacts(at, asked, true)
      return isRefusal(later) ? later : { facts: later }
    },
    answer: (reply) => answer(reply as Finished<N>),
  }
}
/**
 * Like `withFacts`, but also adds facts about the identities in the data that the client sent. If
 * the table does not exist, a command with an idempotency key is sent without these facts, because
 * a deleted table still answers repeats.
 * @param about the rows that the command names by id, and whether the data of rows is needed.
 */
async function withIdentities<N extends RowCommand, R>(
  at: TableAt,
  sent: readonly JsonObject[],
  about: Omit<RowsAsked, 'identities'>,
  answer: (reply: Finished<N>) => MaybePromise<R | Refusal>,
  overdue?: Refusal,
): Changes<R> {
  const column = await identityColumn(at)
  if (isRefusal(column) && !(at.keyed && column.refused === 'not_found')) return column
  const identities = isRefusal(column) ? [] : identitiesIn(sent, column)
  return withFacts(at, { ...about, identities }, answer, overdue)
}

/**
 * Returns the identities in the given data. Only non-empty strings are returned. The table refuses
 * all other values.
 */
const identitiesIn = (data: readonly JsonObject[], column: string): string[] =>
  [
    ...new Set(
      data
        .map((one) => getOwn(one, column))
        .filter((value) => typeof value === 'string' && value !== ''),
    ),
  ] as string[]

/** Returns the rows of an insertion, from the client's data and the reply of the table. */
const rowsOf = (
  { id: table_id }: TableAt,
  sent: readonly JsonObject[],
  { ids, created_at, defaults }: Inserted,
): TableRow[] =>
  ids.map((id, index) => ({
    id,
    table_id,
    data: insertedData(defaults, sent[index] ?? {}),
    version: 1,
    created_at,
    updated_at: created_at,
  }))
function rowOf(at: TableAt, data: JsonObject, reply: Inserted): TableRow {
  const [row] = rowsOf(at, [data], reply)
  if (!row) throw new Error('a table has inserted no row')
  return row
}
/** Returns the updated row. Its data is read from the view if the reply does not contain it. */
const updatedRow = (
  { world, project, id }: TableAt,
  { row: { data, ...row } }: Updated,
): MaybePromise<TableRow | Refusal> =>
  data ? { ...row, data } : world.view(project, 'row.get', { id, row_id: row.id })

/** Prepares the insertion of a row. The response is the row. */
export const insertRow = (at: TableAt, data: JsonObject): Changes<TableRow> =>
  withIdentities<'row.insert', TableRow>(at, [data], { row_ids: [], content: false }, (reply) =>
    rowOf(at, data, reply),
  )
/**
 * Prepares a command that inserts a row, or changes the row with the same identity. `created` is
 * true for a new row.
 */
export const upsertRow = (
  at: TableAt,
  data: JsonObject,
): Changes<{ readonly row: TableRow; readonly created: boolean }> =>
  withIdentities<'row.upsert', { readonly row: TableRow; readonly created: boolean }>(
    at,
    [data],
    { row_ids: [], content: true },
    (reply) =>
      reply.created
        ? { row: rowOf(at, data, reply), created: true }
        : andThen(updatedRow(at, reply), (row) => (isRefusal(row) ? row : { row, created: false })),
    refuse('conflict', undefined, 'Other requests change the row too often; try again later.'),
  )
/** Prepares the deletion of a row. The response is empty. */
export const deleteRow = (at: TableAt, row_id: string): Changes<undefined> =>
  withFacts<'row.delete', undefined>(
    at,
    { identities: [], row_ids: [row_id], content: true },
    () => undefined,
  )
const insertRows = (
  at: TableAt,
  rows: readonly JsonObject[],
): Changes<{ readonly inserted: number; readonly items: readonly TableRow[] }> =>
  withIdentities<'row.bulk', { readonly inserted: number; readonly items: readonly TableRow[] }>(
    at,
    rows,
    { row_ids: [], content: false },
    (reply) => {
      const items = rowsOf(at, rows, reply)
      return { inserted: items.length, items }
    },
  )
const updateRow = (at: TableAt, row_id: string, data: JsonObject): Changes<TableRow> =>
  withIdentities<'row.update', TableRow>(
    at,
    [data],
    { row_ids: [row_id], content: true },
    (reply) => updatedRow(at, reply),
  )

const tableIn = (edge: Edge, call: Call, { seed }: Identity): TableAt => ({
  world: edge.world,
  project: scopeId(edge, call),
  id: call.slots['id'] ?? '',
  keyed: seed !== undefined,
})
const sentData = ({ body }: Call): JsonObject => body['data'] as JsonObject
const rowId = ({ slots }: Call): string => slots['row_id'] ?? ''

/** Preparations of the API rows that change rows of tables, by the name of the API row. */
export const rowPreparations: Readonly<Record<string, Prepare>> = {
  'row.insert': (edge, call, identity) => insertRow(tableIn(edge, call, identity), sentData(call)),
  'row.bulk': (edge, call, identity) =>
    insertRows(tableIn(edge, call, identity), call.body['rows'] as readonly JsonObject[]),
  'row.upsert': async (edge, call, identity) => {
    const change = await upsertRow(tableIn(edge, call, identity), sentData(call))
    return isRefusal(change)
      ? change
      : {
          ...change,
          answer: (reply) =>
            andThen(change.answer(reply), (answer) =>
              isRefusal(answer) || !answer.created ? answer : { ...answer, status_code: 201 },
            ),
        }
  },
  'row.update': (edge, call, identity) =>
    updateRow(tableIn(edge, call, identity), rowId(call), sentData(call)),
  'row.delete': (edge, call, identity) => deleteRow(tableIn(edge, call, identity), rowId(call)),
}
