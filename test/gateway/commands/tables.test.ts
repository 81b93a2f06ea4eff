/**
 * Table commands in a gateway: row facts, repeats with later facts, completed replies, and name
 * claims. The actors and the view are scripted.
 */
import t, { type Test } from 'tap'
import type { Command } from '../../../protocol/entry.ts'
import { refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { gateway, home } from '../support/edge-world.ts'

const ID = makeId('table', 0, Buffer.alloc(10))
const ROW = makeId('row', 0, Buffer.alloc(10))
const at = '2026-01-01T00:00:00.000Z'
const schema = {
  identity_column: 'sku',
  columns: [{ name: 'sku', type: 'string', required: true }],
}
const P = `/v1/projects/${home}/tables`
const T = `${P}/${ID}`

/**
 * Starts a gateway. The owner of each table returns the table's definition if `known`, and null
 * otherwise. `asked` records these queries.
 */
async function served(t: Test, known = true) {
  const it = await gateway({ deadline: 1000 })
  t.teardown(() => it.server.stop())
  const asked: string[] = []
  const ask = it.world.ask.bind(it.world)
  Object.assign(it.world, {
    ask: async (to: { kind: string; id: string }, name: never, input: never) => {
      if (to.kind !== 'table') return ask(to as never, name, input)
      asked.push(to.id)
      return known ? { id: to.id, schema } : null
    },
  })
  const facts: unknown[] = []
  // The view applies four changes between two queries.
  it.views['table_facts'] = (input) => {
    facts.push(input)
    return { through: 4 * facts.length - 3, rows: [] }
  }
  const view = it.world.view.bind(it.world)
  /**
   * The value of `fresh` in each query for facts. If it is undefined, the view must have applied
   * everything that is committed.
   */
  const freshness: (number | undefined)[] = []
  Object.assign(it.world, {
    view: (project: string, name: string, input: unknown, fresh?: number) => {
      if (name === 'table_facts') freshness.push(fresh)
      return view(project, name as never, input as never, fresh)
    },
  })
  return { ...it, asked, facts, freshness }
}
const factsOf = ({ input }: Command) => (input as { facts?: { through: number } }).facts?.through
const inserted = (...ids: string[]) => ({
  reply: { ids, created_at: at, defaults: { state: 'new' } },
})

t.test('an insertion takes facts about its identity, and the answer has the data', async (t) => {
  const it = await served(t)
  it.on['row.insert'] = () => inserted(ROW)
  const { status, body } = await it.call('POST', `${T}/rows`, { data: { sku: 'a', size: null } })
  t.equal(status, 201)
  t.strictSame(body as object, {
    id: ROW,
    table_id: ID,
    data: { state: 'new', sku: 'a' },
    version: 1,
    created_at: at,
    updated_at: at,
  })
  t.strictSame(it.facts, [{ id: ID, identities: ['a'], row_ids: [], content: false }])
  await it.call('POST', `${T}/rows`, { data: { sku: 'b' } })
  t.strictSame(it.asked, [ID], 'the identity column is read once')
})

t.test('a command with old facts is repeated under its id with later facts', async (t) => {
  const it = await served(t)
  it.on['row.bulk'] = (command) =>
    (factsOf(command) ?? 0) < 8
      ? { reply: { stale: (factsOf(command) ?? 0) + 4 } }
      : inserted('r1', 'r2')
  const { status, body } = await it.call(
    'POST',
    `${T}/bulk`,
    { rows: [{ sku: 'a' }, { sku: 'b', state: 'old' }] },
    { 'idempotency-key': 'once' },
  )
  t.equal(status, 201)
  t.match(body, {
    inserted: 2,
    items: [{ data: { sku: 'a', state: 'new' } }, { data: { sku: 'b', state: 'old' } }],
  })
  const sent = it.sent('row.bulk')
  t.strictSame(sent.map(factsOf), [1, 5, 9])
  t.strictSame(it.freshness, [0, undefined, undefined])
  t.equal(new Set(sent.map(({ command_id }) => command_id)).size, 1)
  t.equal(new Set(sent.map(({ fingerprint }) => fingerprint)).size, 1)
})

t.test('repeats with later facts end at the deadline', async (t) => {
  const it = await served(t)
  for (const name of ['row.insert', 'row.upsert'])
    it.on[name] = async () => {
      it.advance(400)
      return { reply: { stale: 2 } }
    }
  const insert = await it.call('POST', `${T}/rows`, { data: { sku: 'a' } })
  t.match(insert, { status: 503, body: { error: { code: 'service_unavailable' } } })
  t.equal(it.sent('row.insert').length, 3)
  const upsert = await it.call('POST', `${T}/upsert`, { data: { sku: 'a' } })
  t.match(upsert, { status: 409, body: { error: { code: 'conflict' } } })
})

t.test('an update takes facts about the row and about a new identity', async (t) => {
  const it = await served(t)
  const row = { id: ROW, table_id: ID, version: 2, created_at: at, updated_at: at }
  it.on['row.update'] = () => ({ reply: { row: { ...row, data: { sku: 'b' } }, change: 3 } })
  t.match(await it.call('PATCH', `${T}/rows/${ROW}`, { data: { sku: 'b' } }), {
    status: 200,
    body: { ...row, data: { sku: 'b' } },
  })
  await it.call('PATCH', `${T}/rows/${ROW}`, { data: { sku: 7 } })
  t.strictSame(it.facts, [
    { id: ID, identities: ['b'], row_ids: [ROW], content: true },
    { id: ID, identities: [], row_ids: [ROW], content: true },
  ])
  it.on['row.update'] = () => ({ reply: { row, change: 3 } })
  it.views['row.get'] = () => ({ ...row, data: { sku: 'from the view' } })
  t.match(await it.call('PATCH', `${T}/rows/${ROW}`, { data: { sku: 'b' } }), {
    body: { data: { sku: 'from the view' } },
  })
})

t.test('an upsert answers 201 for a new row and 200 for a changed one', async (t) => {
  const it = await served(t)
  it.on['row.upsert'] = () => ({ reply: { ...inserted(ROW).reply, created: true } })
  t.match(await it.call('POST', `${T}/upsert`, { data: { sku: 'a' } }), {
    status: 201,
    body: { created: true, row: { id: ROW, data: { sku: 'a', state: 'new' } } },
  })
  const row = { id: ROW, table_id: ID, version: 2, created_at: at, updated_at: at, data: {} }
  it.on['row.upsert'] = () => ({ reply: { row, change: 2, created: false } })
  const changed = await it.call('POST', `${T}/rows/upsert`, { data: { sku: 'a' } })
  t.equal(changed.status, 200)
  t.strictSame(changed.body as object, { row, created: false })
})

t.test('a table that does not exist gets no command', async (t) => {
  const it = await served(t, false)
  t.equal((await it.call('POST', `${T}/rows`, { data: {} })).status, 404)
  t.equal(it.sent('row.insert').length, 0)
})

t.test('a repeat under an idempotency key reaches the actor of a deleted table', async (t) => {
  const it = await served(t, false)
  it.on['row.insert'] = () => inserted(ROW)
  it.on['row.bulk'] = () => refuse('not_found')
  const key = { 'idempotency-key': 'once' }
  const insert = await it.call('POST', `${T}/rows`, { data: { sku: 'a' } }, key)
  t.match(insert, { status: 201, body: { id: ROW, data: { sku: 'a' } } })
  t.equal((await it.call('POST', `${T}/bulk`, { rows: [{ sku: 'a' }] }, key)).status, 404)
})

const definition = { name: 'stock', schema }
/** Scripts the replies to claims on a name. The claims are numbered from 1. */
function naming(it: Awaited<ReturnType<typeof served>>) {
  let claims = 0
  it.on['table_name.claim'] = () => ({ reply: { claim: ++claims } })
  it.on['table.claim_lapsed'] = () => ({ reply: undefined })
  const lapsed = () =>
    it.sent('table.claim_lapsed').map(({ id, input }) => ({ id, ...(input as object) }))
  const claimsSent = (name: string) =>
    it.sent(name).map(({ input }) => (input as { claim?: { claim: number } }).claim?.claim)
  return { lapsed, claimsSent }
}

t.test('a table is created with a claim on its name', async (t) => {
  const it = await served(t, false)
  const { lapsed, claimsSent } = naming(it)
  it.on['table.create'] = ({ id }) => ({ reply: { id, ...definition } })
  const made = await it.call('POST', P, definition)
  t.equal(made.status, 201)
  const [claim] = it.sent('table_name.claim')
  t.strictSame(claim?.input, { name: 'stock', table_id: made.body.id })
  t.strictSame(claimsSent('table.create'), [1])
  t.match(it.sent('table.create'), [{ id: made.body.id, input: { claim: { holder: claim?.id } } }])
  t.strictSame(lapsed(), [])
})

t.test('a refused command gives its claim back', async (t) => {
  const it = await served(t)
  const { lapsed } = naming(it)
  it.on['table.update'] = () => refuse('table_schema_immutable')
  t.equal((await it.call('PATCH', T, { name: 'other', schema })).status, 409)
  const [claim] = it.sent('table_name.claim')
  t.strictSame(lapsed(), [{ id: ID, holder: claim?.id, claim: 1, name: 'other' }])
  it.on['table.update'] = () => refuse('service_unavailable')
  t.equal((await it.call('PATCH', T, { name: 'other' })).status, 503)
  t.equal(lapsed().length, 1, 'the table may still use a claim whose outcome is unknown')
  it.on['table_name.claim'] = () => refuse('already_exists', { field: 'name' })
  t.equal((await it.call('PATCH', T, { name: 'taken' })).status, 409)
  t.equal(it.sent('table.update').length, 2, 'without a claim, there is no command')
})

t.test('a claim that came too late is claimed again', async (t) => {
  const it = await served(t)
  const { lapsed, claimsSent } = naming(it)
  it.on['table.update'] = ({ input }) =>
    (input as { claim: { claim: number } }).claim.claim < 2
      ? refuse('conflict', { claim: 'lapsed' })
      : { reply: { id: ID, ...definition } }
  t.equal((await it.call('PATCH', T, { name: 'stock' })).status, 200)
  t.strictSame(claimsSent('table.update'), [1, 2])
  t.equal(new Set(it.sent('table.update').map(({ command_id }) => command_id)).size, 1)
  t.strictSame(lapsed(), [])
})

t.test('a repeated creation claims no name', async (t) => {
  const it = await served(t)
  naming(it)
  it.on['table.create'] = ({ id }) => ({ reply: { id, ...definition } })
  t.equal((await it.call('POST', P, definition, { 'idempotency-key': 'once' })).status, 201)
  t.equal(it.sent('table_name.claim').length, 0, 'the table exists already')
})

t.test('queries echo the limit, and their cursors belong to filter and sort', async (t) => {
  const it = await served(t)
  const page = { items: [], position: [1] }
  it.views['table.query'] = () => page
  it.views['table.search'] = () => page
  const first = await it.call('POST', `${T}/query`)
  t.match(first.body, { items: [], has_more: true, limit: 20, next_cursor: String })
  const cursor = first.body.next_cursor
  const query = (body: object) => it.call('POST', `${T}/rows/query`, body)
  t.match(await query({ cursor, limit: 7 }), { status: 200, body: { limit: 7 } })
  t.match(it.questions.at(-1)?.input, { id: ID, after: [1], limit: 7 })
  t.equal((await query({ cursor, filter: { sku: 'a' } })).status, 400)
  t.equal((await query({ cursor, sort: [{ field: 'sku' }] })).status, 400)
  const search = (body: object) => it.call('POST', `${T}/search`, body)
  t.equal((await search({ query: 'a', cursor })).status, 400)
  t.equal((await search({ query: 'a' })).status, 200)
  t.match(await search({ query: 'a', mode: 'semantic' }), {
    status: 503,
    body: { error: { code: 'table_semantic_search_unavailable' } },
  })
})
