/**
 * Built-in actions on the rows of tables, for agents and steps. They use the same lookups, commands
 * and queries as the endpoints. A call identifies a table by its name or its id.
 */
import { decideWithRevisions } from '../../../gateway/commands/decide.ts'
import type { TableAt } from '../../../gateway/commands/tables/facts.ts'
import {
  deleteRow,
  insertRow,
  type RowChange,
  upsertRow,
} from '../../../gateway/commands/tables/rows.ts'
import { sealedPage } from '../../../gateway/http/cursor.ts'
import { queryRows, searchRows } from '../../../gateway/queries/rows.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import type { RowQuestion } from '../../../protocol/queries/views.ts'
import type { TableSchema } from '../../../protocol/tables/schema.ts'
import { dataOfTexts, filterOfTexts } from '../../../protocol/tables/texts.ts'
import { hasTexts, sentBy } from './act.ts'
import type { BuiltinFunction, Called, Service } from './builtin.ts'

/** Maximum number of table names in the refusal of an unknown table. */
const MAX_NAMES = 50

/**
 * Returns the table that a call identifies. The refusal of an unknown name lists the names of the
 * newest tables, so that a model can correct its call.
 */
async function tableIn({ world }: Service, { project, call }: Called): Promise<TableAt | Refusal> {
  const table = String(call.parameters['table'])
  if (isId(table, 'table')) return { world, project, id: table }
  const found = await world.view(project, 'table.list', { name: table, limit: 1 })
  if (isRefusal(found)) return found
  const [first] = found.items
  if (first) return { world, project, id: first.id }
  const known = await world.view(project, 'table.list', { limit: MAX_NAMES })
  return isRefusal(known)
    ? known
    : refuseFields({
        field: 'table',
        message: 'there is no such table in this project',
        expected: known.items.map(({ name }) => name),
        actual: table,
      })
}

/**
 * If a step rendered the parameter, converts its strings to the types that the table requires.
 * Otherwise, returns the parameter unchanged.
 * @param convert the conversion, which depends on the columns of the table.
 */
async function withValues<P extends JsonObject | undefined>(
  { call }: Called,
  { world, project, id }: TableAt,
  parameter: P,
  convert: (schema: TableSchema, parameter: JsonObject) => JsonObject,
): Promise<P | JsonObject | Refusal> {
  if (!parameter || !hasTexts(call)) return parameter
  const table = await world.ask({ project, kind: 'table', id }, 'definition', {})
  if (table === null) return refuse('not_found', { resource: 'table' })
  return isRefusal(table) ? table : convert(table.schema, parameter)
}
async function rowIn(
  service: Service,
  called: Called,
): Promise<{ readonly at: TableAt; readonly data: JsonObject } | Refusal> {
  const at = await tableIn(service, called)
  if (isRefusal(at)) return at
  const sent = called.call.parameters['data'] as JsonObject
  const data = await withValues(called, at, sent, dataOfTexts)
  return isRefusal(data) ? data : { at, data }
}

interface TableCommand {
  readonly name: 'row.insert' | 'row.upsert' | 'row.delete'
  readonly at: TableAt
  readonly parameters: JsonObject
}
/** Sends a command that changes a row. `prepared` is the change, or why it cannot be made. */
async function change<R>(
  service: Service,
  called: Called,
  { name, at, parameters }: TableCommand,
  prepared: RowChange<R> | Refusal,
): Promise<R | Refusal> {
  if (isRefusal(prepared)) return prepared
  const { causation } = called.call
  const command = {
    project: at.project,
    kind: 'table' as const,
    id: at.id,
    ...sentBy(service, called),
    // The fingerprint makes the table remember the command like one with an idempotency key.
    // Without it, a repeated attempt could take effect a second time after 256 other writes.
    fingerprint: called.job.id,
    name,
    input: {
      id: at.id,
      ...parameters,
      ...prepared.input,
      ...(causation && causation.depth > 0 && { causation }),
    },
  }
  const outcome = await decideWithRevisions(service.world, command, prepared.revise)
  return isRefusal(outcome) ? outcome : prepared.answer(outcome.reply)
}

/** Inserts a row. The result is the row. */
export const insertAction: BuiltinFunction = async (service, called) => {
  const wanted = await rowIn(service, called)
  if (isRefusal(wanted)) return wanted
  const { at, data } = wanted
  const command: TableCommand = { name: 'row.insert', at, parameters: { data } }
  const row = await change(service, called, command, await insertRow(at, data))
  return isRefusal(row) ? row : { ...row }
}
/**
 * Inserts a row or changes the row that has the same identity. The result has `row` and `created`.
 */
export const upsertAction: BuiltinFunction = async (service, called) => {
  const wanted = await rowIn(service, called)
  if (isRefusal(wanted)) return wanted
  const { at, data } = wanted
  const command: TableCommand = { name: 'row.upsert', at, parameters: { data } }
  const done = await change(service, called, command, await upsertRow(at, data))
  return isRefusal(done) ? done : { ...done }
}
/** Deletes a row. The result is empty. */
export const deleteAction: BuiltinFunction = async (service, called) => {
  const at = await tableIn(service, called)
  if (isRefusal(at)) return at
  const row_id = String(called.call.parameters['row_id'])
  const command: TableCommand = { name: 'row.delete', at, parameters: { row_id } }
  const done = await change(service, called, command, await deleteRow(at, row_id))
  return isRefusal(done) ? done : {}
}

async function read<N extends 'table.query' | 'table.search'>(
  service: Service,
  called: Called,
  route: N,
  ask: (
    world: Service['world'],
    project: string,
    question: RowQuestion<N>,
  ) => ReturnType<typeof queryRows>,
): ReturnType<BuiltinFunction> {
  const { world } = service
  const at = await tableIn(service, called)
  if (isRefusal(at)) return at
  const { project, id } = at
  const { table: _, cursor, filter: sent, ...rest } = called.call.parameters
  const filter = await withValues(called, at, sent as JsonObject | undefined, filterOfTexts)
  if (filter && isRefusal(filter)) return filter
  const question = { ...rest, ...(filter && { filter }) }
  const binding = { project, route, filters: { ...question, id } }
  const found = await sealedPage(world, binding, cursor, (after) => {
    // The cast is safe, because the parameters were validated with the schema of the action.
    const asked: unknown = { ...question, ...after, id }
    return ask(world, project, asked as RowQuestion<N>)
  })
  if (isRefusal(found)) return found
  const { page, paging } = found
  return { items: page.items, ...paging, ...page.beside }
}
/** Reads the rows that match a filter. The result is a page. */
export const queryAction: BuiltinFunction = (service, called) =>
  read(service, called, 'table.query', queryRows)
/** Searches rows by text. The result is a page. */
export const searchAction: BuiltinFunction = (service, called) =>
  read(service, called, 'table.search', searchRows)
