/** Agent memory over HTTP: entries, search, the change feed, and how a client maintains a copy. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, listOf, pages } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const fresh = async (name: string) => ({ id: (await s.ok('agent.create', { name }))['id'] })
const keys = (answer: object) => listOf(answer).map(({ key }) => String(key))

t.test('memory entries are saved, counted and deleted', async (t) => {
  const at = await fresh('Rememberer')
  t.strictSame(await s.ok('memory.get', at), {
    agent_id: at.id,
    entry_count: 0,
    counts_by_kind: {},
  })
  const made = await s.call('memory.save', {
    ...at,
    memory_key: 'user:ada.likes',
    content: 'Ada likes tea.',
    summary: 'tea',
    kind: 'preference',
    metadata: { from: 'chat' },
    importance: 80,
    pinned: true,
  })
  t.equal(made.status, 201)
  t.match(made.body, {
    key: 'user:ada.likes',
    entry_id: /^mem_/,
    kind: 'preference',
    content: 'Ada likes tea.',
    summary: 'tea',
    metadata: { from: 'chat' },
    importance: 80,
    pinned: true,
    version: 1,
  })
  t.strictSame(listOf(await s.ok('memory.entries', at)), [made.body])
  const again = await s.call('memory.save', {
    ...at,
    memory_key: 'user:ada.likes',
    content: 'Ada likes coffee.',
  })
  t.equal(again.status, 200)
  t.match(again.body, {
    version: 2,
    kind: 'fact',
    importance: 50,
    pinned: false,
    entry_id: made.body['entry_id'],
  })
  t.notOk('summary' in again.body)
  await s.ok('memory.save', { ...at, memory_key: 'weather', content: 'Rain.', kind: 'episode' })
  t.match(await s.ok('memory.get', at), {
    entry_count: 2,
    counts_by_kind: { fact: 1, episode: 1 },
    updated_at: /Z$/,
  })
  for (let n = 0; n < 2; n++)
    t.equal((await s.call('memory.forget', { ...at, memory_key: 'weather' })).status, 204)
  t.strictSame(keys(await s.ok('memory.entries', at)), ['user:ada.likes'])
  t.strictSame(
    fieldsOf(
      await s.refused(
        'memory.save',
        { ...at, memory_key: 'no spaces', content: 'x' },
        400,
        'bad_request',
      ),
    ),
    ['memory_key'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'memory.save',
        { ...at, memory_key: 'k', content: '', importance: 101 },
        400,
        'bad_request',
      ),
    ).sort(),
    ['content', 'importance'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'memory.save',
        { ...at, memory_key: 'k', content: 'x', metadata: { much: 'x'.repeat(20_000) } },
        400,
        'bad_request',
      ),
    ),
    ['metadata'],
  )
  for (const id of ['agt_none', `${String(at.id).slice(0, -3)}000`]) {
    for (const row of ['memory.get', 'memory.entries', 'memory.changes'] as const)
      await s.refused(row, { id }, 404, 'not_found')
    await s.refused('memory.save', { id, memory_key: 'k', content: 'x' }, 404, 'not_found')
    await s.refused('memory.forget', { id, memory_key: 'k' }, 404, 'not_found')
  }
})

t.test('writes of other principals are in the audit log, without the content', async (t) => {
  const at = await fresh('Audited')
  for (const content of ['secret one', 'secret two'])
    await s.ok('memory.save', { ...at, memory_key: 'k', content })
  for (let n = 0; n < 2; n++) await s.ok('memory.forget', { ...at, memory_key: 'k' })
  const log = listOf(
    await s.ok('audit.list', { resource_type: 'agent_memory', resource_id: `${at.id}:k` }),
  )
  t.match(log, [
    { action: 'delete', resource_name: 'k' },
    { action: 'update', changes: { version: { from: 1, to: 2 } } },
    { action: 'create', actor_type: 'service_account' },
  ])
  t.equal(log.length, 3)
  t.notMatch(JSON.stringify(log), 'secret')
})

t.test(
  'entries are listed with pinned ones first, then by importance, and found by their words',
  async (t) => {
    const at = await fresh('Searcher')
    for (const [memory_key, content, more] of [
      ['low', 'The red bicycle', { importance: 1 }],
      ['high', 'A RED car', { importance: 99 }],
      ['pin', 'blue', { importance: 5, pinned: true, kind: 'summary' }],
      ['mid', 'green', {}],
    ] as const)
      await s.ok('memory.save', { ...at, memory_key, content, ...more })
    t.strictSame(
      (await pages(s, 'memory.entries', at)).map(({ key }) => key),
      ['pin', 'high', 'mid', 'low'],
    )
    t.strictSame(keys(await s.ok('memory.entries', { ...at, query: 'red' })), ['high', 'low'])
    t.strictSame(keys(await s.ok('memory.entries', { ...at, query: 'Red  CAR' })), ['high'])
    t.strictSame(
      keys(await s.ok('memory.entries', { ...at, query: 'mid' })),
      ['mid'],
      'keys are searched as well',
    )
    t.strictSame(keys(await s.ok('memory.entries', { ...at, kind: 'summary' })), ['pin'])
    t.strictSame(
      keys(await s.ok('memory.entries', { ...at, query: ' ', search_mode: 'semantic', limit: 1 })),
      ['pin'],
      'an empty query returns the whole list',
    )
    for (const search_mode of ['semantic', 'hybrid'])
      await s.refused(
        'memory.entries',
        { ...at, query: 'red', search_mode },
        503,
        'memory_semantic_search_unavailable',
      )
  },
)

t.test('a client that follows the change feed has the same entries as the service', async (t) => {
  const at = await fresh('Followed')
  const empty = await s.ok('memory.changes', at)
  t.match(empty, { items: [], has_more: false, next_cursor: /./ })
  t.equal(
    (await s.ok('memory.changes', { ...at, after: empty['next_cursor'] }))['next_cursor'],
    empty['next_cursor'],
    'an empty page keeps its cursor',
  )
  await s.ok('memory.save', { ...at, memory_key: 'a', content: '1' })
  await s.ok('memory.save', { ...at, memory_key: 'a', content: '2' })
  await s.ok('memory.save', { ...at, memory_key: 'b', content: '1' })
  await s.ok('memory.forget', { ...at, memory_key: 'a' })
  const seen = []
  let after: unknown = empty['next_cursor']
  for (let more = true; more; ) {
    const page = await s.ok('memory.changes', { ...at, after, limit: 1 })
    seen.push(...listOf(page))
    after = page['next_cursor']
    more = page['has_more'] as unknown as boolean
  }
  t.strictSame(
    seen.map(({ memory_key, operation, version }) => [memory_key, operation, version]),
    [
      ['a', 'created', 1],
      ['a', 'updated', 2],
      ['b', 'created', 1],
      ['a', 'deleted', 3],
    ],
  )
  t.match(seen[0], {
    id: /^mchg_/,
    agent_id: at.id,
    memory_entry_id: /^mem_/,
    reason: 'api',
    actor_id: /^svc_/,
  })
  t.notOk(seen.some((change) => 'content' in change || 'summary' in change))
  t.strictSame(
    listOf(await s.ok('memory.changes', at)),
    seen,
    'without a cursor, changes start with the oldest',
  )
  t.strictSame(
    fieldsOf(await s.refused('memory.changes', { ...at, after: 'x' }, 400, 'bad_request')),
    ['after'],
  )
  const other = await fresh('Other')
  await s.refused('memory.changes', { ...other, after }, 400, 'bad_request')
  await s.restart(undefined)
  t.match(await s.ok('memory.changes', { ...at, after }), { items: [], next_cursor: after })
  t.strictSame(keys(await s.ok('memory.entries', at)), ['b'])
})

t.test('deleting an agent deletes its memory', async () => {
  const at = await fresh('Mortal')
  await s.ok('memory.save', { ...at, memory_key: 'a', content: 'last words' })
  await s.ok('agent.delete', at)
  for (const row of ['memory.get', 'memory.entries', 'memory.changes'] as const)
    await s.refused(row, at, 404, 'not_found')
  await s.refused('memory.save', { ...at, memory_key: 'a', content: 'x' }, 404, 'not_found')
})
