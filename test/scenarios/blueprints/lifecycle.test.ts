/** Bindings, protection and deletion of whole blueprints, and their entries in the audit log. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, idsOf, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const apply = (identity: Open, resources: Open, more: Open = {}) =>
  s.ok('blueprint.apply', { ...identity, resources, ...more })
const skill = (name: string) => ({ skills: [{ key: 's', name }] })
const json = { 'content-type': 'application/json' }
const protect = (key: string, query: string, body: object) =>
  s.raw('PUT', `/v1/projects/default/blueprints/${encodeURIComponent(key)}/protection${query}`, {
    body: JSON.stringify(body),
    headers: json,
  })
const remove = (key: string, query = '') =>
  s.raw('DELETE', `/v1/projects/default/blueprints/${encodeURIComponent(key)}${query}`)
const list = async (query: Open = {}) => listOf(await s.ok('blueprint.bindings', query))
const schema = {
  columns: [{ name: 'n', type: 'string', required: true }],
  identity_column: 'n',
}

t.test('namespace and key filter bindings independently', async (t) => {
  await apply({}, skill('None'))
  await apply({ namespace: 'a' }, skill('Only namespace'))
  await apply({ blueprint_key: 'one' }, skill('Only key'))
  await apply({ namespace: 'a', blueprint_key: 'one' }, skill('Both'))
  await apply({ namespace: 'b', blueprint_key: 'one' }, skill('Other'))
  t.equal((await list()).length, 5)
  t.equal((await list({ namespace: 'a' })).length, 2)
  t.equal((await list({ blueprint_key: 'one' })).length, 3)
  t.equal((await list({ namespace: 'a', blueprint_key: 'one' })).length, 1)
  t.equal((await list({ namespace: 'A' })).length, 0)
  t.equal((await list({ blueprint_key: 'none' })).length, 0)
  const raw = await s.raw('GET', '/v1/projects/default/blueprints/bindings')
  t.strictSame(Object.keys(raw.body), ['items'])
})

t.test('a request without a namespace applies only to the blueprint without one', async (t) => {
  for (const query of ['', '?namespace=']) {
    const off = await protect('one', query, { protected: true })
    t.equal(off.status, 200)
    t.strictSame(
      listOf(off.body).map((binding) => [binding['namespace'], binding['protected']]),
      [[undefined, true]],
    )
  }
  t.equal((await list({ blueprint_key: 'one' })).filter((one) => one['protected']).length, 1)
  const gone = await remove('one')
  t.strictSame(Object.keys(gone.body).sort(), ['blueprint_key', 'deleted', 'retained', 'status'])
  t.equal(gone.status, 200)
  t.equal(listOf(gone.body, 'deleted').length, 1)
  t.equal((await list({ blueprint_key: 'one' })).length, 2)
  const named = await remove('one', '?namespace=a')
  t.match(named.body, { status: 'deleted', namespace: 'a', blueprint_key: 'one', retained: [] })
  const again = await remove('one', '?namespace=a')
  t.strictSame(again.body, {
    status: 'deleted',
    namespace: 'a',
    blueprint_key: 'one',
    deleted: [],
    retained: [],
  })
})

t.test('the protection of an unknown blueprint, and invalid requests, are refused', async (t) => {
  for (const [key, query] of [
    ['unknown', ''],
    ['one', ''],
    ['one', '?namespace=c'],
  ] as const)
    t.match(await protect(key, query, { protected: true }), {
      status: 404,
      body: { error: { code: 'not_found' } },
    })
  for (const body of [{}, { protected: 'yes' }, { protected: true, more: 1 }])
    t.match(await protect('one', '?namespace=b', body), { status: 400 })
  t.match(await protect('x'.repeat(129), '', { protected: true }), { status: /40[04]/ })
  t.match(await remove('one', '?delete_retained=perhaps'), { status: 400 })
  t.match(await remove('one', '?unknown=1'), { status: 400 })
})

t.test('keys and namespaces with any characters work in paths and queries', async (t) => {
  for (const text of ['a/b', 'ä ü%20', 'a?b#c', '...', '日本', 'q\'"', 'a+b&c=d']) {
    const identity = { namespace: text, blueprint_key: text }
    const applied = await apply(identity, skill(`S ${text}`))
    t.match(applied, identity)
    const query = `?${new URLSearchParams({ namespace: text })}`
    t.match(await protect(text, query, { protected: true }), {
      status: 200,
      body: { items: [{ ...identity, protected: true }] },
    })
    t.equal((await list(identity)).length, 1)
    const gone = await remove(text, query)
    t.match(gone.body, { ...identity, deleted: [{ key: 's' }] }, text)
  }
})

t.test('adopted resources are retained and unbound, unless they are deleted too', async (t) => {
  const identity = { blueprint_key: 'adopts' }
  const adopted = {
    tables: [{ key: 't', name: 'adopted_table', schema }],
    agents: [{ key: 'a', name: 'adopted' }],
    loops: [{ key: 'l', name: 'Adopted' }],
    channels: [{ key: 'c', name: 'adopted' }],
  }
  const created = { skills: [{ key: 's', name: 'Created' }] }
  const table = await s.ok('table.create', { name: 'adopted_table', schema })
  const agent = await s.ok('agent.create', { name: 'adopted' })
  await s.ok('loop.create', { name: 'Adopted', status: 'draft' })
  await s.ok('channel.create', { name: 'adopted' })
  await apply(identity, { ...adopted, ...created }, { protect_resources: true })
  const gone = await s.ok('blueprint.delete', { ...identity, include: ['further_types'] })
  t.strictSame(
    listOf(gone, 'deleted').map(({ key }) => key),
    ['s'],
  )
  t.strictSame(
    listOf(gone, 'retained').map(({ key }) => key),
    ['t', 'a', 'l', 'c'],
  )
  t.strictSame(await list(identity), [])
  await s.ok('table.update', { id: table['id'], description: 'no longer protected' })
  await s.ok('agent.update', { id: agent['id'], description: 'no longer protected' })
  const again = await apply(identity, adopted)
  t.ok(listOf(again, 'changes').every(({ action }) => `${action}` === 'adopted'))
  const all = await s.ok('blueprint.delete', { ...identity, delete_retained: true })
  t.equal(listOf(all, 'deleted').length, 3, 'further types are answered on request')
  t.strictSame(all['retained'], [])
  await s.refused('table.get', { id: table['id'] }, 404, 'not_found')
  await s.refused('agent.get', { id: agent['id'] }, 404, 'not_found')
  t.strictSame(
    listOf(await s.ok('channel.list')).filter(({ name }) => `${name}` === 'adopted'),
    [],
  )
})

t.test('a deletion removes rows and follows references backwards', async (t) => {
  const identity = { blueprint_key: 'deep' }
  const applied = await apply(identity, {
    tables: [{ key: 't', name: 'deep_table', schema }],
    toolkits: [{ key: 'k', name: 'Deep kit' }],
    skills: [{ key: 's', name: 'Deep skill' }],
    agents: [{ key: 'a', name: 'deep', toolkits: [{ key: 'k' }], skills: [{ key: 's' }] }],
    loops: [{ key: 'l', name: 'Deep', agent: { key: 'a' } }],
  })
  const [table] = listOf(applied, 'bindings').filter(({ key }) => `${key}` === 't')
  await s.ok('row.insert', { id: table?.['resource_id'], data: { n: '1' } })
  const gone = await s.ok('blueprint.delete', identity)
  t.equal(listOf(gone, 'deleted').length, 5)
  const again = await apply(identity, { tables: [{ key: 't', name: 'deep_table', schema }] })
  t.match(listOf(again, 'changes'), [{ action: 'created' }])
  const [next] = listOf(again, 'bindings')
  t.strictSame(listOf(await s.ok('table.query', { id: next?.['resource_id'] })), [])
})

t.test('each changed resource has one audit entry, and so has the call', async (t) => {
  const identity = { namespace: 'log', blueprint_key: 'book', blueprint_version: '7' }
  const since = listOf(await s.ok('audit.list', { limit: 1 }))[0]?.['id']
  // Entries with these resource types are ignored. Rows for agents log them in addition to the
  // entry of the agent: one for its principal, and one for its assigned toolkits.
  const parts = new Set(['principal', 'agent_assignment'])
  const entries = async () => {
    const all = listOf(await s.ok('audit.list', { limit: 200 }))
    const end = all.findIndex(({ id }) => id === since)
    return all
      .slice(0, end)
      .filter((entry) => !parts.has(String(entry['resource_type'])))
      .map((entry) => [entry['resource_type'], entry['action']].join(' '))
  }
  const resources = {
    tables: [{ key: 't', name: 'log_table', schema }],
    actions: [{ key: 'x', name: 'log.do', type: 'worker' }],
    skills: [{ key: 's', name: 'Log skill' }],
    toolkits: [{ key: 'k', name: 'Log kit' }],
    agents: [{ key: 'a', name: 'log', toolkits: [{ key: 'k' }] }],
    loops: [{ key: 'l', name: 'Log', agent: { key: 'a' } }],
  }
  const sorted = (...all: string[]) => all.sort()
  await apply(identity, resources, { mode: 'preview' })
  t.strictSame(await entries(), [], 'a preview is not logged')
  await apply(identity, resources)
  const first = await entries()
  t.equal(first.filter((one) => one === 'blueprint update').length, 1)
  for (const type of ['table', 'action', 'skill', 'toolkit', 'agent', 'loop'])
    t.equal(first.filter((one) => one === `${type} create`).length, 1, type)
  t.equal(first.length, 7, `nothing else: ${first}`)
  await apply(identity, resources)
  const second = (await entries()).slice(0, -first.length)
  t.strictSame(second, ['blueprint update'], 'an apply without changes logs the call')
  await apply(identity, { agents: [{ key: 'a', name: 'log', color: 'red' }] })
  const third = (await entries()).slice(0, -first.length - 1)
  t.strictSame(third.sort(), sorted('agent update', 'blueprint update'))
  await protect('book', '?namespace=log', { protected: true })
  const fourth = (await entries()).slice(0, -first.length - 3)
  t.strictSame(fourth, ['blueprint update'], 'protection logs the call')
  await s.ok('blueprint.delete', { namespace: 'log', blueprint_key: 'book' })
  const last = (await entries()).slice(0, -first.length - 4)
  t.strictSame(
    last.sort(),
    sorted(
      ...['table', 'action', 'skill', 'toolkit', 'agent', 'loop', 'blueprint'].map(
        (type) => `${type} delete`,
      ),
    ),
  )
  const log = listOf(await s.ok('audit.list', { resource_type: 'blueprint', limit: 200 }))
  const own = log.filter(({ resource_name }) => `${resource_name}` === 'log/book')
  t.equal(own.length, 5)
  t.match(own[4], { changes: { created: { to: 6 }, blueprint_version: { to: '7' } } })
  t.equal(new Set(idsOf({ items: log })).size, log.length)
  const [entry = {} as Found] = own
  t.match(entry, { actor_type: String, actor_id: String, request_id: String })
})
