/**
 * The built-in actions on tables: the commands and queries that they send, and their outcomes. The
 * table and the view are scripted.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import type { Directory } from '../../../gateway/directory.ts'
import { builtinActions, type Service } from '../../../nodes/executor/builtin/builtin.ts'
import type { Handler } from '../../../nodes/executor/handler.ts'
import type { ActionCall } from '../../../protocol/actions/invocation.ts'
import type { Command } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { fake } from '../../support/fake-world.ts'

type Work = Parameters<Handler['perform']>[0]
type Open = Readonly<Record<string, unknown>>
const TABLE = makeId('table', 0, Buffer.alloc(10))
const at = '2026-01-01T00:00:00.000Z'
const schema = {
  identity_column: 'sku',
  columns: [
    { name: 'sku', type: 'string', required: true },
    { name: 'n', type: 'number' },
  ],
}

/**
 * Returns a handler of the built-in actions whose table gives the scripted replies, with the
 * commands and queries that it sends. `perform` executes one action.
 */
function given(replies: readonly ({ readonly reply: unknown } | Refusal)[] = []) {
  const sent: Command[] = []
  const queries: { readonly name: string; readonly input: Open }[] = []
  const left = [...replies]
  let call: ActionCall | undefined
  const service = {
    directory: fake<Directory>('directory', {
      project: async () => ({ agents: { agt_1: { name: 'Ada' } }, principals: {} }),
    }),
    world: {
      settings: { brand: 'Service', deadline: 1000 },
      now: () => 0,
      monotonic: () => 0,
      seal: (text: string) => createHash('sha256').update(text).digest(),
      ask: async (_: unknown, name: string) =>
        name === 'action_call' ? call : { id: TABLE, schema },
      view: async (_: string, name: string, input: Open) => {
        queries.push({ name, input })
        if (name === 'table.list')
          return { items: input['name'] === 'gone' ? [] : [{ id: TABLE, name: 'parts' }] }
        return name === 'table_facts'
          ? { through: queries.length, rows: [] }
          : { items: [], position: [1, 'row'] }
      },
      commandRow: async (command: Command) => {
        sent.push(command)
        return (
          left.shift() ?? { reply: { ids: ['row_1'], created_at: at, defaults: {}, created: true } }
        )
      },
    },
  } as unknown as Service
  const handler = builtinActions(service)
  const perform = (verb: string, parameters: Open, more: Partial<ActionCall> = {}) => {
    const action_name = `service.table.${verb}`
    call = {
      action_name,
      parameters,
      actor: { principal_id: 'agt_1', principal_type: 'agent' },
      origin: 'agent_tool_call',
      ...more,
    }
    return handler.perform({
      project: 'prj_1',
      job: { id: 'job_1', action_name, session_id: 'ses_1', claim_attempt: 1 },
      signal: new AbortController().signal,
    } as unknown as Work)
  }
  return { sent, queries, perform, handler }
}

t.test('an insertion is sent under the id of its job, on behalf of the agent', async (t) => {
  const it = given()
  const outcome = await it.perform('insert', { table: 'parts', data: { sku: 'a' } })
  t.strictSame(outcome, {
    status: 'completed',
    result: {
      id: 'row_1',
      table_id: TABLE,
      data: { sku: 'a' },
      version: 1,
      created_at: at,
      updated_at: at,
    },
  })
  const [command] = it.sent
  t.match(command, {
    project: 'prj_1',
    kind: 'table',
    id: TABLE,
    name: 'row.insert',
    command_id: 'tool:job_1',
    fingerprint: 'job_1',
    origin: { principal: { type: 'agent', id: 'agt_1', name: 'Ada' } },
    input: { id: TABLE, data: { sku: 'a' } },
  })
  t.notOk('causation' in ((command as Command).input as object))
  await it.perform('insert', { table: TABLE, data: { sku: 'a' } })
  t.equal(it.sent[1]?.command_id, command?.command_id, 'another attempt repeats the command')
})
t.test('the causation of the call is part of the command', async (t) => {
  const it = given()
  const causation = { depth: 3, chain: { root: 'sevt_1', loops: ['loop_1'] } }
  for (const verb of ['insert', 'upsert'])
    await it.perform(verb, { table: TABLE, data: { sku: 'a' } }, { causation })
  await it.perform('delete', { table: TABLE, row_id: 'row_1' }, { causation })
  for (const { input } of it.sent) t.match(input, { causation })
})
t.test('a command with old facts is repeated with later ones', async (t) => {
  const it = given([{ reply: { stale: 7 } }])
  t.match(await it.perform('insert', { table: TABLE, data: { sku: 'a' } }), { status: 'completed' })
  t.strictSame(
    it.sent.map(({ command_id, input }) => [
      command_id,
      (input as { facts: { through: number } }).facts.through,
    ]),
    [
      ['tool:job_1', 1],
      ['tool:job_1', 2],
    ],
  )
})
t.test('an upsert returns the row and whether it is new', async (t) => {
  const row = { id: 'row_1', table_id: TABLE, version: 2, created_at: at, updated_at: at }
  const it = given([{ reply: { created: false, row: { ...row, data: { sku: 'a' } }, change: 2 } }])
  t.strictSame(await it.perform('upsert', { table: TABLE, data: { sku: 'a' } }), {
    status: 'completed',
    result: { row: { ...row, data: { sku: 'a' } }, created: false },
  })
})
t.test('a deletion has an empty result', async (t) => {
  const it = given([{ reply: undefined }])
  t.strictSame(await it.perform('delete', { table: TABLE, row_id: 'row_1' }), {
    status: 'completed',
    result: {},
  })
  t.match(it.sent, [{ name: 'row.delete', input: { row_id: 'row_1' } }])
})
t.test('a query returns a page with a cursor, which its next call continues', async (t) => {
  const it = given()
  const first = await it.perform('query', { table: 'parts', filter: { n: 1 }, limit: 5 })
  t.match(first, {
    status: 'completed',
    result: { items: [], has_more: true, limit: 5, next_cursor: String },
  })
  const { next_cursor } = (first as { result: Open }).result
  await it.perform('query', { table: TABLE, filter: { n: 1 }, cursor: next_cursor })
  t.match(it.queries.at(-1), {
    name: 'table.query',
    input: { id: TABLE, filter: { n: 1 }, after: [1, 'row'], limit: 20 },
  })
  t.match(await it.perform('query', { table: TABLE, filter: { n: 2 }, cursor: next_cursor }), {
    status: 'failed',
    error_type: 'bad_request',
    error_message: /cursor/,
    final: true,
  })
})
t.test('a search by meaning is refused', async (t) => {
  const it = given()
  await it.perform('search', { table: TABLE, query: 'x' })
  t.match(it.queries, [{ name: 'table.search', input: { query: 'x', limit: 20 } }])
  t.match(await it.perform('search', { table: TABLE, query: 'x', mode: 'hybrid' }), {
    error_type: 'table_semantic_search_unavailable',
  })
})
t.test('an unknown table is refused with the names of tables', async (t) => {
  t.match(await given().perform('query', { table: 'gone' }), {
    status: 'failed',
    error_type: 'bad_request',
    error_message: /there is no such table.*"expected":\["parts"\]/,
    final: true,
  })
})
t.test('parameters that do not fit the schema are refused before anything is sent', async (t) => {
  const it = given()
  t.match(await it.perform('insert', { table: TABLE, data: 1, odd: true }), {
    error_type: 'bad_request',
    error_message: /data.*odd/s,
  })
  t.strictSame(it.sent, [])
})
t.test('texts of a step become values; those of an agent stay as they are', async (t) => {
  const it = given()
  const parameters = { table: TABLE, data: { sku: '1', n: '2' } }
  await it.perform('insert', parameters, { origin: 'loop_action_step' })
  await it.perform('insert', parameters)
  t.match(it.sent, [{ input: { data: { sku: '1', n: 2 } } }, { input: { data: { n: '2' } } }])
})
t.test('a temporary refusal is retried, any other is final', async (t) => {
  const it = given([refuse('service_unavailable'), refuse('already_exists', { row_id: 'row_1' })])
  const insert = () => it.perform('insert', { table: TABLE, data: { sku: 'a' } })
  t.match(await insert(), { error_type: 'service_unavailable', retry_in: Number })
  t.match(await insert(), { error_type: 'already_exists', final: true })
})
t.test('steps of any principal can call them, other built-in actions only agents', async (t) => {
  const it = given()
  const actor = { principal_id: 'system', principal_type: 'system' } as const
  const step = { actor, origin: 'loop_action_step' } as const
  t.match(await it.perform('insert', { table: TABLE, data: { sku: 'a' } }, step), {
    status: 'completed',
  })
  t.match(it.sent[0]?.origin, { principal: { type: 'system', id: 'system' } })
  const takes = (action_name: string) =>
    it.handler.takes('prj_1', { executor_kind: 'customer_worker', action_name } as never)
  t.match(takes('service.table.insert'), { losses: 3 })
  t.equal(takes('service.memory.remember'), undefined)
})
