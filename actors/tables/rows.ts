/**
 * Decisions about rows. Each decision first determines the current rows (`currentRows`) from the
 * window of the table and from the facts of a view that the command contains. If these do not
 * suffice, the reply is `StaleReply`, and nothing is stored.
 */
import { type JsonObject, timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type FieldError, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { Causation } from '../../protocol/events/sources.ts'
import {
  type AddedTableInputs,
  type Inserted,
  isStale,
  MAX_REPLY_DATA_LENGTH,
  type StaleReply,
  type StoredRow,
  type TableEvent,
  type TableReplies,
  type Updated,
} from '../../protocol/tables/events.ts'
import {
  changedMembers,
  defaultsOf,
  identityOf,
  insertedData,
  insertFaults,
  mergedData,
  updateFaults,
  visibleData,
} from '../../protocol/tables/row-data.ts'
import type { TableRows } from '../../protocol/tables/rows.ts'
import type { Table } from '../../protocol/tables/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import { groupsOf } from './source-events.ts'
import { isLive, type LiveTable, type TableState } from './state.ts'
import { type CurrentRows, currentRows } from './window.ts'

type RowCommand = 'row.insert' | 'row.bulk' | 'row.upsert' | 'row.update' | 'row.delete'
type RowInput<N extends RowCommand> = Input<TableRows[N]> & AddedTableInputs[N]
type RowDecision<N extends RowCommand> = Decision<TableEvent, TableReplies[N]>

/** Maximum number of faults that a refusal lists. */
const MAX_FAULTS = 100

/** A decision whose reply is a value, not a function, so that `upsert` can extend it. */
type Outcome<R> =
  | { readonly events: readonly TableEvent[]; readonly reply: R | StaleReply }
  | Refusal
const nothing = (reply: StaleReply) => ({ events: [], reply })
/** The current rows for a command, and the causation for the events of the change. */
interface Basis {
  readonly current: CurrentRows
  readonly caused: { readonly causation?: Causation }
}
const basisOf = (state: TableState, { facts, causation }: AddedTableInputs[RowCommand]): Basis => ({
  current: currentRows(state.window, facts, state.change),
  caused: causation ? { causation } : {},
})

/** A row of a request. `path`: the path of its data in the request. */
interface NewRow {
  readonly sent: JsonObject
  readonly path: string
}
/** A valid new row. `length`: characters of its data as JSON. */
interface ValidRow {
  readonly identity: string
  readonly data: JsonObject
  readonly length: number
}

/**
 * Validates new rows and determines their identities. Does not check whether identities are unique.
 */
function validRows(
  { schema }: Table,
  defaults: JsonObject,
  rows: readonly NewRow[],
): ValidRow[] | Refusal {
  const faults: FieldError[] = []
  const valid: ValidRow[] = []
  for (const { sent, path } of rows) {
    if (faults.length >= MAX_FAULTS) break
    const data = insertedData(defaults, sent)
    const json = JSON.stringify(data)
    const found = insertFaults(schema, data, json, sent, path)
    if (found.length > 0) faults.push(...found.slice(0, MAX_FAULTS - faults.length))
    const identity = identityOf(schema, data)
    if (typeof identity === 'string') valid.push({ identity, data, length: json.length })
  }
  return faults.length > 0 ? refuseFields(...faults) : valid
}

/** Refuses identities that occur twice in the request or belong to existing rows. */
function takenIdentities(
  { table }: LiveTable,
  current: CurrentRows,
  rows: readonly NewRow[],
  valid: readonly ValidRow[],
): Refusal | StaleReply | undefined {
  const seen = new Set<string>()
  const fields: FieldError[] = []
  let row_id: string | undefined
  for (const [index, { identity }] of valid.entries()) {
    const holder = current.holderOf(identity)
    if (isStale(holder)) return holder
    const isRepeated = seen.has(identity)
    seen.add(identity)
    if (holder === undefined && !isRepeated) continue
    row_id ??= holder
    if (fields.length < MAX_FAULTS)
      fields.push({
        field: `${rows[index]?.path}.${table.schema.identity_column}`,
        message: isRepeated
          ? 'is the identity of another row of the request'
          : 'is the identity of a stored row',
        actual: identity,
      })
  }
  return fields.length === 0
    ? undefined
    : refuse(
        'already_exists',
        {
          ...(rows.length === 1 && row_id !== undefined && { row_id }),
          fields,
        },
        'A row with this identity already exists; see details.',
      )
}

/** Inserts all rows as one change, or none of them. */
function insertRows(
  maxRows: number,
  state: LiveTable,
  rows: readonly NewRow[],
  { current, caused }: Basis,
  cause: Cause,
): Outcome<Inserted> {
  const { table } = state
  const defaults = defaultsOf(table.schema)
  const valid = validRows(table, defaults, rows)
  if ('refused' in valid) return valid
  const taken = takenIdentities(state, current, rows, valid)
  if (taken) return isStale(taken) ? nothing(taken) : taken
  if (state.rows + rows.length > maxRows)
    return refuse('conflict', { limit: maxRows }, `A table has at most ${maxRows} rows.`)
  const now = timestamp(cause.at)
  // All rows of a request have the same creation time, so their ids determine their order in lists.
  // The ids are sorted so that lists show the rows in the order of the request.
  const ids = valid.map(() => cause.mint('row')).sort()
  const stored = valid.map(
    ({ identity, data }, index): StoredRow => ({
      id: ids[index] as string,
      identity,
      data,
      version: 1,
      created_at: now,
      updated_at: now,
    }),
  )
  const [first] = stored
  const shared = { table_name: table.name, change: state.change + 1, ...caused }
  return {
    events: [
      first && stored.length === 1
        ? { type: 'table.row_inserted', ...shared, row: first }
        : {
            type: 'table.rows_inserted',
            ...shared,
            rows: stored,
            groups: groupsOf(valid.map(({ length }) => length)),
          },
    ],
    reply: { ids, created_at: now, defaults },
  }
}

function updatedReply({ id: table_id, schema }: Table, row: StoredRow, change: number): Updated {
  const { id, version, created_at, updated_at } = row
  const data = visibleData(schema, row.data)
  return {
    row: {
      id,
      table_id,
      ...(JSON.stringify(data).length <= MAX_REPLY_DATA_LENGTH && { data }),
      version,
      created_at,
      updated_at,
    },
    change,
  }
}
function mergeRow(
  { table, change: last }: LiveTable,
  row: StoredRow,
  sent: JsonObject,
  { current, caused }: Basis,
  { at }: Cause,
): Outcome<Updated> {
  const { schema } = table
  const data = mergedData(row.data, sent)
  const faults = updateFaults(schema, data, sent, 'data')
  if (faults.length > 0) return refuseFields(...faults.slice(0, MAX_FAULTS))
  const identity = identityOf(schema, data) as string
  const holder = identity === row.identity ? undefined : current.holderOf(identity)
  if (isStale(holder)) return nothing(holder)
  if (holder !== undefined)
    return refuse(
      'already_exists',
      { row_id: holder },
      'Another row of the table has this identity.',
    )
  const [before, shown] = [visibleData(schema, row.data), visibleData(schema, data)]
  const changed = changedMembers(before, shown)
  const next: StoredRow = {
    ...row,
    identity,
    data,
    version: row.version + 1,
    updated_at: timestamp(at),
  }
  const change = last + 1
  return {
    events: [
      {
        type: 'table.row_updated',
        table_name: table.name,
        change,
        row: next,
        changed,
        previous: Object.fromEntries(
          changed.filter((name) => Object.hasOwn(before, name)).map((name) => [name, before[name]]),
        ),
        ...(identity !== row.identity && { previous_identity: row.identity }),
        ...(shown !== data && { shown }),
        ...caused,
      },
    ],
    reply: updatedReply(table, next, change),
  }
}

/**
 * Inserts a row. Refuses with `already_exists` if another row has the same identity, and with
 * `conflict` if the table is full.
 */
export const insert =
  (maxRows: number) =>
  (state: TableState, input: RowInput<'row.insert'>, cause: Cause): RowDecision<'row.insert'> =>
    isLive(state)
      ? insertRows(
          maxRows,
          state,
          [{ sent: input.data, path: 'data' }],
          basisOf(state, input),
          cause,
        )
      : refuse('not_found')

/**
 * Inserts several rows, or none of them. A refusal lists the invalid rows, or the rows whose
 * identities are taken.
 */
export const bulk =
  (maxRows: number) =>
  (state: TableState, input: RowInput<'row.bulk'>, cause: Cause): RowDecision<'row.bulk'> =>
    isLive(state)
      ? insertRows(
          maxRows,
          state,
          input.rows.map((sent, index) => ({ sent, path: `rows[${index}]` })),
          basisOf(state, input),
          cause,
        )
      : refuse('not_found')

/**
 * Changes members of a row. The version is incremented even if no value differs. Refuses with
 * `conflict` if the row's version differs from the expected version, and with `already_exists` if
 * another row has the new identity.
 */
export function update(
  state: TableState,
  input: RowInput<'row.update'>,
  cause: Cause,
): RowDecision<'row.update'> {
  if (!isLive(state)) return refuse('not_found')
  const { row_id, data, version = 0 } = input
  const basis = basisOf(state, input)
  const row = basis.current.rowOf(row_id)
  if (!row) return refuse('not_found')
  if (isStale(row)) return nothing(row)
  if (version !== 0 && version !== row.version)
    return refuse(
      'conflict',
      { current_version: row.version },
      'The row has another version; read it again.',
    )
  return mergeRow(state, row, data, basis, cause)
}

/** Inserts a row, or merges the data into the row with the same identity. */
export const upsert =
  (maxRows: number) =>
  (state: TableState, input: RowInput<'row.upsert'>, cause: Cause): RowDecision<'row.upsert'> => {
    if (!isLive(state)) return refuse('not_found')
    const { data } = input
    const basis = basisOf(state, input)
    const { current } = basis
    const identity = identityOf(state.table.schema, data)
    const holder = typeof identity === 'string' ? current.holderOf(identity) : undefined
    if (isStale(holder)) return nothing(holder)
    const row = holder === undefined ? undefined : current.rowOf(holder)
    if (isStale(row)) return nothing(row)
    if (row) {
      const merged = mergeRow(state, row, data, basis, cause)
      if ('refused' in merged) return merged
      const { events, reply } = merged
      return { events, reply: isStale(reply) ? reply : { ...reply, created: false } }
    }
    const inserted = insertRows(maxRows, state, [{ sent: data, path: 'data' }], basis, cause)
    if ('refused' in inserted) return inserted
    const { events, reply } = inserted
    return { events, reply: isStale(reply) ? reply : { ...reply, created: true } }
  }

/** Deletes a row. Refuses with `not_found` if the row does not exist. */
export function remove(
  state: TableState,
  input: RowInput<'row.delete'>,
): RowDecision<'row.delete'> {
  if (!isLive(state)) return refuse('not_found')
  const { table, change } = state
  const { current, caused } = basisOf(state, input)
  const row = current.rowOf(input.row_id)
  if (!row) return refuse('not_found')
  if (isStale(row)) return nothing(row)
  const shown = visibleData(table.schema, row.data)
  return {
    events: [
      {
        type: 'table.row_deleted',
        table_name: table.name,
        change: change + 1,
        row,
        ...(shown !== row.data && { shown }),
        ...caused,
      },
    ],
    reply: undefined,
  }
}
