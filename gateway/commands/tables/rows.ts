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
import { andThen, type MaybePromise } from '../../maybe-promise.ts'
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
  const facts = await readFacts(edge, call, asked, false)
  if (isRefusal(facts)) return facts
  const until = world.now() + world.settings.deadline
  return {
    input: { facts },
    revise: async (outcome) => {
      if (isRefusal(outcome) || !isStale(outcome.reply)) return undefined
      if (world.now() >= until) return overdue
      const later = await readFacts(edge, call, asked, true)
      return isRefusal(later) ? later : { facts: later }
    },
    ...(answer && { answer: answer as (reply: unknown) => MaybePromise<unknown> }),
  }
}
/**
 * Like `withFacts`, with facts about the identities in data that the client sent.
 * @param about the other rows of the command, and whether the data of all of them is needed.
 */
async function withIdentities(
  edge: Edge,
  call: Call,
  sent: readonly JsonObject[],
  about: Omit<RowsAsked, 'identities'>,
  answer: (reply: never) => MaybePromise<unknown>,
  overdue?: Refusal,
): Promise<Prepared | Refusal> {
  const column = await identityColumn(edge, call)
  return isRefusal(column)
    ? column
    : withFacts(edge, call, { ...about, identities: identitiesIn(sent, column) }, answer, overdue)
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

/** The rows of an insertion, from the data that the client sent and the reply of the table. */
const rowsOf = (
  call: Call,
  sent: readonly JsonObject[],
  { ids, created_at, defaults }: Inserted,
): TableRow[] =>
  ids.map((id, index) => ({
    id,
    table_id: call.slots['id'] ?? '',
    data: insertedData(defaults, sent[index] ?? {}),
    version: 1,
    created_at,
    updated_at: created_at,
  }))
/** The row of an update. Its data is read from the view if the reply does not contain it. */
const updatedRow = (edge: Edge, call: Call, { row }: Updated): MaybePromise<unknown> =>
  row.data
    ? row
    : edge.world.view(scopeId(edge, call), 'row.get', {
        id: call.slots['id'] ?? '',
        row_id: row.id,
      })

const insert: Prepare = (edge, call) => {
  const sent = [sentData(call)]
  return withIdentities(
    edge,
    call,
    sent,
    { row_ids: [], content: false },
    (reply: Finished<'row.insert'>) => rowsOf(call, sent, reply)[0],
  )
}

const bulk: Prepare = (edge, call) => {
  const sent = call.body['rows'] as readonly JsonObject[]
  return withIdentities(
    edge,
    call,
    sent,
    { row_ids: [], content: false },
    (reply: Finished<'row.bulk'>) => {
      const items = rowsOf(call, sent, reply)
      return { inserted: items.length, items }
    },
  )
}

const upsert: Prepare = (edge, call) => {
  const sent = [sentData(call)]
  return withIdentities(
    edge,
    call,
    sent,
    { row_ids: [], content: true },
    (reply: Finished<'row.upsert'>) =>
      reply.created
        ? { row: rowsOf(call, sent, reply)[0], created: true, status_code: 201 }
        : andThen(updatedRow(edge, call, reply), (row) =>
            isRefusal(row) ? row : { row, created: false },
          ),
    refuse('conflict', undefined, 'The row is changed too often by others; try again later.'),
  )
}

const update: Prepare = (edge, call) =>
  withIdentities(
    edge,
    call,
    [sentData(call)],
    { row_ids: [call.slots['row_id'] ?? ''], content: true },
    (reply: Finished<'row.update'>) => updatedRow(edge, call, reply),
  )

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
