/** Creating, changing and deleting a table, and the claims on its name (name.ts). */
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { reservedTags } from '../../protocol/naming.ts'
import { evolutionFaults } from '../../protocol/tables/definition.ts'
import type {
  AddedTableInputs,
  NameClaim,
  TableCommands,
  TableEvent,
} from '../../protocol/tables/events.ts'
import type { TableRows } from '../../protocol/tables/rows.ts'
import type { Table } from '../../protocol/tables/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeOf } from '../configuration.ts'
import { isDenied, isLive, type LiveTable, type TableState } from './state.ts'

type Decided<R> = Decision<TableEvent, R>

const lapsed = (): Refusal =>
  refuse(
    'conflict',
    { claim: 'lapsed' },
    'The reservation of the name has expired; send the request again.',
  )

/** Creates the table under the name that the gateway has claimed for it. */
export function create(
  state: TableState,
  {
    name,
    description,
    instructions,
    schema,
    claim,
  }: Input<TableRows['table.create']> & AddedTableInputs['table.create'],
  { self: { id }, principal, at }: Cause,
): Decided<Table> {
  if (isLive(state) || state.deleted) return refuse('conflict')
  if (isDenied(state, claim)) return lapsed()
  const table: Table = {
    id,
    name,
    ...(description && { description }),
    ...(instructions && { instructions }),
    schema,
    created_by: principal.id,
    updated_by: principal.id,
    created_at: timestamp(at),
    updated_at: timestamp(at),
  }
  return { events: [{ type: 'table.created', id, table, claim }], reply: table }
}

/**
 * If `wish` is a newer claim on the table's current name, returns the event that records it.
 * Otherwise, returns an empty list.
 */
function claimEvents({ claim }: LiveTable, wish: NameClaim | undefined): TableEvent[] {
  return wish && wish.holder === claim.holder && wish.claim > claim.claim
    ? [{ type: 'table.name_kept', claim: wish }]
    : []
}
/**
 * Changes the definition. Refuses with `table_schema_immutable` if the change to the schema is not
 * allowed.
 * @param brand the configured brand, the prefix of reserved tags.
 */
export const update =
  (brand: string) =>
  (
    state: TableState,
    input: Input<TableRows['table.update']> & AddedTableInputs['table.update'],
    { principal, at }: Cause,
  ): Decided<Table> => {
    if (!isLive(state)) return refuse('not_found')
    const { table } = state
    const { name, description, instructions, schema, tags, claim } = input
    const isRenamed = name !== undefined && name !== table.name
    if (claim && isDenied(state, claim)) return lapsed()
    if (isRenamed && !claim) return refuse('internal', { claim: 'missing' })
    const reserved = reservedTags(tags, brand)
    if (reserved.length > 0) return refuseFields(...reserved)
    const fields = schema ? evolutionFaults(table.schema, schema, state.rows === 0) : []
    if (fields.length > 0) return refuse('table_schema_immutable', { fields })
    const change = changeOf<Table>(table, { name, description, instructions, schema, tags }, at)
    const kept = claimEvents(state, claim)
    if (!change) return { events: kept, reply: table }
    return {
      events: [
        ...kept,
        {
          type: 'table.updated',
          id: table.id,
          table: { ...change.patch, updated_by: principal.id },
          changes: change.changes,
          ...(isRenamed && claim && { claim, released: state.claim }),
        },
      ],
      reply: { ...change.next, updated_by: principal.id },
    }
  }

/** Deletes the table with its rows, without an event per row, and releases its name. */
export function remove(state: TableState): Decided<undefined> {
  if (!isLive(state)) return refuse('not_found')
  const { id, name } = state.table
  return {
    events: [{ type: 'table.deleted', id, name, released: state.claim }],
    reply: undefined,
  }
}

/**
 * Handles a claim on a name that was not confirmed in time. Confirms the claim if the table has
 * this name. Otherwise, denies the claim.
 */
export function claimLapsed(
  state: TableState,
  { holder, claim }: TableCommands['table.claim_lapsed']['input'],
): Decided<undefined> {
  if (isLive(state) && state.claim.holder === holder)
    return { events: claimEvents(state, { holder, claim }), reply: undefined }
  return {
    events: isDenied(state, { holder, claim })
      ? []
      : [{ type: 'table.claim_denied', claim: { holder, claim } }],
    reply: undefined,
  }
}
