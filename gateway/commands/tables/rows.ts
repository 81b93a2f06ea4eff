/**
 * Preparations of the commands about rows: they add facts about the rows, repeat a command whose
 * facts were too old, and complete the reply, which does not contain what the client sent.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { CommandReply } from '../../../protocol/queries/commands.ts'
import {
  type Inserted,
  isStale,
  type Stale,
  type Updated,
} from '../../../protocol/tables/events.ts'
import { insertedData } from '../../../protocol/tables/row-data.ts'
import type { TableRow } from '../../../protocol/tables/schema.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import type { MaybePromise } from '../../maybe-promise.ts'
import type { Prepare, Prepared } from '../../prepare.ts'
import { identityColumn, type RowsAsked, readFacts } from './facts.ts'

type Finished<N extends 'row.insert' | 'row.bulk' | 'row.upsert' | 'row.update'> = Exclude<
  CommandReply<'table', N>,
  Stale
>

/**
 * Adds facts to a command, and repeats it with later facts for as long as the table asks for them.
 * After the time limit of a command, the call is refused with `overdue`.
 */
async function withFacts(
  edge: Edge,
  call: Call,
  asked: RowsAsked,
  answer?: (reply: never) => MaybePromise<unknown>,
  overdue: Refusal = refuse('service_unavailable', { retry_after: 1 }),
): Promise<Prepared | Refusal> {
  const { world } = edge
  const facts = await readFacts(edge, call, asked)
  if (isRefusal(facts)) return facts
  const until = world.now() + world.settings.deadline
  return {
    input: { facts },
    revise: async (outcome) => {
      if (isRefusal(outcome) || !isStale(outcome.reply)) return undefined
      if (world.now() >= until) return overdue
      const later = await readFacts(edge, call, asked, outcome.reply.stale)
      return isRefusal(later) ? later : { facts: later }
    },
    ...(answer && { answer: answer as (reply: unknown) => MaybePromise<unknown> }),
  }
}

const sentData = ({ body }: Call): JsonObject => body['data'] as JsonObject
/** The identities among values. Values of another type are refused by the table. */
const identitiesIn = (data: readonly JsonObject[], column: string): string[] =>
  [
    ...new Set(
      data
        .map((one) => getOwn(one, column))
        .filter((value) => typeof value === 'string' && value !== ''),
    ),
  ] as string[]

/** The rows of an insertion, from what the client sent and the reply of the table. */
function rowsOf(
  call: Call,
  sent: readonly JsonObject[],
  { ids, created_at, defaults }: Inserted,
): TableRow[] {
  return ids.map((id, index) => ({
    id,
    table_id: call.slots['id'] ?? '',
    data: insertedData(defaults, sent[index] ?? {}),
    version: 1,
    created_at,
    updated_at: created_at,
  }))
}
/** The row of an update. Its data is read from the view if the reply does not contain it. */
async function updatedRow(edge: Edge, call: Call, { row }: Updated): Promise<unknown> {
  if (row.data) return row
  return edge.world.view(scopeId(edge, call), 'row.get', {
    id: call.slots['id'] ?? '',
    row_id: row.id,
  })
}

async function insert(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const column = await identityColumn(edge, call)
  if (isRefusal(column)) return column
  const sent = [sentData(call)]
  return withFacts(
    edge,
    call,
    { identities: identitiesIn(sent, column), row_ids: [], content: false },
    (reply: Finished<'row.insert'>) => rowsOf(call, sent, reply)[0],
  )
}

async function bulk(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const column = await identityColumn(edge, call)
  if (isRefusal(column)) return column
  const sent = call.body['rows'] as readonly JsonObject[]
  return withFacts(
    edge,
    call,
    { identities: identitiesIn(sent, column), row_ids: [], content: false },
    (reply: Finished<'row.bulk'>) => {
      const items = rowsOf(call, sent, reply)
      return { inserted: items.length, items }
    },
  )
}

async function upsert(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const column = await identityColumn(edge, call)
  if (isRefusal(column)) return column
  const sent = [sentData(call)]
  return withFacts(
    edge,
    call,
    { identities: identitiesIn(sent, column), row_ids: [], content: true },
    (reply: Finished<'row.upsert'>) => {
      if (reply.created)
        return { row: rowsOf(call, sent, reply)[0], created: true, status_code: 201 }
      if (reply.row.data) return { row: reply.row, created: false }
      return updatedRow(edge, call, reply).then((row) =>
        isRefusal(row) ? row : { row, created: false },
      )
    },
    refuse('conflict', undefined, 'The row is changed too often by others; try again later.'),
  )
}

async function update(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const column = await identityColumn(edge, call)
  if (isRefusal(column)) return column
  return withFacts(
    edge,
    call,
    {
      identities: identitiesIn([sentData(call)], column),
      row_ids: [call.slots['row_id'] ?? ''],
      content: true,
    },
    (reply: Finished<'row.update'>) => (reply.row.data ? reply.row : updatedRow(edge, call, reply)),
  )
}

const remove: Prepare = (edge, call) =>
  withFacts(edge, call, {
    identities: [],
    row_ids: [call.slots['row_id'] ?? ''],
    content: true,
  })

/** Preparations by row name. */
export const rowPreparations: Readonly<Record<string, Prepare>> = {
  'row.insert': insert,
  'row.bulk': bulk,
  'row.upsert': upsert,
  'row.update': update,
  'row.delete': remove,
}
