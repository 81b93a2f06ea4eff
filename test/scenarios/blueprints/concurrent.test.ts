/** Concurrent applies and deletions, and repeats under an idempotency key. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const second = await s.add()

type Open = Record<string, unknown>
const urls = [s.url, second.url ?? '']
const bindings = async (blueprint_key: string): Promise<Found[]> =>
  listOf(await s.ok('blueprint.bindings', { blueprint_key }))
const actionsOf = (result: object): Found[] =>
  listOf(result, 'changes').map(({ action }) => action as unknown as Found)
const keyed = (key: string) => ({ headers: { 'idempotency-key': key } })
/** Milliseconds that a call may take when no other request holds the blueprint. */
const MAX_CALL_MS = 15_000

const schema = {
  columns: [{ name: 'n', type: 'string', required: true }],
  identity_column: 'n',
}
/**
 * Returns the resources of a blueprint. They are written in several tiers, because some refer to
 * others.
 */
const several = (prefix: string, count = 8): Open => ({
  tables: [
    {
      key: 't',
      name: `${prefix}_table`,
      schema,
    },
  ],
  skills: Array.from({ length: count }, (_, n) => ({ key: `s${n}`, name: `${prefix} skill ${n}` })),
  toolkits: [{ key: 'k', name: `${prefix} kit` }],
  agents: [{ key: 'a', name: `${prefix}-agent`, toolkits: [{ key: 'k' }] }],
  loops: [{ key: 'l', name: `${prefix} loop`, agent: { key: 'a' } }],
})
const namesLike = async (row: 'skill.list' | 'toolkit.list' | 'agent.list', prefix: string) =>
  listOf(await s.ok(row, { limit: 200 })).filter(({ name }) => String(name).startsWith(prefix))

t.test('applies of one blueprint at two gateways happen one after the other', async (t) => {
  const call = { blueprint_key: 'same', resources: several('same') }
  const results = await Promise.all(
    [0, 1, 0, 1, 0].map((at) => s.ok('blueprint.apply', call, { url: urls[at] ?? '' })),
  )
  const created = results.filter((result) =>
    actionsOf(result).every((one) => `${one}` === 'created'),
  )
  t.equal(created.length, 1, 'one of them creates everything')
  t.equal(
    results.filter((result) => actionsOf(result).every((one) => `${one}` === 'unchanged')).length,
    4,
    'the others find it unchanged',
  )
  for (const result of results) t.strictSame(result['bindings'], results[0]?.['bindings'])
  t.equal((await namesLike('skill.list', 'same')).length, 8)
  t.equal((await namesLike('toolkit.list', 'same')).length, 1)
})

t.test('of two blueprints that adopt one resource, one gets it', async (t) => {
  await s.ok('agent.create', { name: 'contested' })
  const answers = await Promise.all(
    ['left', 'right'].map((blueprint_key, at) =>
      s.call(
        'blueprint.apply',
        { blueprint_key, resources: { agents: [{ key: 'a', name: 'contested', color: 'red' }] } },
        { url: urls[at] ?? '' },
      ),
    ),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [200, 409])
  const lost = answers.find(({ status }) => status === 409)
  t.match(lost?.body, {
    error: {
      code: 'blueprint_owned_elsewhere',
      details: { resource_type: 'agent', key: 'a', resource_id: String },
    },
  })
  t.equal((await bindings('left')).length + (await bindings('right')).length, 1)
})

t.test('of two blueprints that create one name, one gets it', async (t) => {
  for (const [index, resources] of [
    { agents: [{ key: 'a', name: 'double' }] },
    { actions: [{ key: 'a', name: 'double.do', type: 'worker' }] },
    {
      tables: [{ key: 'a', name: 'double_table', schema }],
    },
    { channels: [{ key: 'a', name: 'double' }] },
    { roles: [{ key: 'a', name: 'double', permissions: ['service.project.view'] }] },
  ].entries()) {
    const answers = await Promise.all(
      ['left', 'right'].map((side, at) =>
        s.call(
          'blueprint.apply',
          { blueprint_key: `${side}-${index}`, resources, include: ['further_types'] },
          { url: urls[at] ?? '' },
        ),
      ),
    )
    const lost = answers.find(({ status }) => status !== 200)
    t.strictSame(answers.map(({ status }) => status).sort(), [200, 409], JSON.stringify(resources))
    t.match(lost?.body, { error: { code: /already_exists|blueprint_owned_elsewhere/ } })
    const { items } = (await s.ok('blueprint.bindings', { include: ['further_types'] })) as {
      items: never
    }
    t.equal(
      (items as Found[]).filter(({ blueprint_key }) => String(blueprint_key).endsWith(`-${index}`))
        .length,
      1,
    )
  }
})

t.test('a deletion during an apply waits for it, or is applied again afterwards', async (t) => {
  const call = { blueprint_key: 'both', resources: several('both', 20) }
  await s.ok('blueprint.apply', call)
  const [applied, removed] = await Promise.all([
    s.ok('blueprint.apply', { ...call, blueprint_version: '2' }),
    s.ok('blueprint.delete', { blueprint_key: 'both' }, { url: urls[1] ?? '' }),
  ])
  t.equal(listOf(removed, 'deleted').length, 24)
  const left = await bindings('both')
  const outcomes = new Set(actionsOf(applied).map(String))
  t.equal(outcomes.size, 1, `the apply saw all or nothing: ${[...outcomes]}`)
  t.equal(left.length, outcomes.has('created') ? 24 : 0)
  t.equal((await namesLike('skill.list', 'both')).length, outcomes.has('created') ? 20 : 0)
})

t.test('a repeat under an idempotency key gets the first answer', async (t) => {
  const call = { blueprint_key: 'keyed', resources: several('keyed') }
  const first = await s.ok('blueprint.apply', call, keyed('once'))
  const again = await s.ok('blueprint.apply', call, { ...keyed('once'), url: urls[1] ?? '' })
  t.strictSame(again, first)
  t.ok(actionsOf(again).every((one) => `${one}` === 'created'))
  await s.ok('blueprint.delete', { blueprint_key: 'keyed' })
  t.strictSame(await s.ok('blueprint.apply', call, keyed('once')), first)
  t.strictSame(await bindings('keyed'), [], 'the repeat does nothing')
  const other = { ...call, resources: several('keyed', 2) }
  await s.refused('blueprint.apply', other, 409, 'idempotency_key_conflict', keyed('once'))
  t.strictSame(await bindings('keyed'), [], 'and neither does another body')
  await s.refused(
    'blueprint.apply',
    { ...call, blueprint_key: 'keyed-2' },
    409,
    'idempotency_key_conflict',
    keyed('once'),
  )
  t.strictSame(await bindings('keyed-2'), [])
  await s.ok('blueprint.apply', { ...call, mode: 'preview' })
})

t.test(
  'repeats during the first request get its answer, and do not hold the blueprint',
  async (t) => {
    const call = { blueprint_key: 'during', resources: several('during') }
    const results = await Promise.all(
      [0, 1, 0].map((at) =>
        s.ok('blueprint.apply', call, { ...keyed('during'), url: urls[at] ?? '' }),
      ),
    )
    for (const result of results) t.strictSame(result, results[0])
    t.ok(actionsOf(results[0] ?? {}).every((one) => `${one}` === 'created'))
    const from = Date.now()
    await s.ok('blueprint.apply', call)
    t.ok(Date.now() - from < MAX_CALL_MS, 'the blueprint is free')
  },
)

t.test('a different request with the key of a running one changes nothing', async (t) => {
  const call = (count: number) => ({ blueprint_key: 'mixed', resources: several('mixed', count) })
  const answers = await Promise.all(
    [3, 5].map((count, at) =>
      s.call('blueprint.apply', call(count), { ...keyed('mixed'), url: urls[at] ?? '' }),
    ),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [200, 409])
  const won = answers.find(({ status }) => status === 200)
  t.strictSame(await bindings('mixed'), won?.body['bindings'])
  t.match(answers.find(({ status }) => status === 409)?.body, {
    error: { code: 'idempotency_key_conflict' },
  })
  const from = Date.now()
  await s.ok('blueprint.delete', { blueprint_key: 'mixed' })
  t.ok(Date.now() - from < MAX_CALL_MS, 'the blueprint is free')
})

t.test('a refused apply gives the blueprint up', async (t) => {
  const wrong = { agents: [{ key: 'a', name: 'a', toolkits: [{ key: 'missing' }] }] }
  const call = { blueprint_key: 'free', resources: wrong }
  const from = Date.now()
  for (let n = 0; n < 3; n++)
    await s.refused('blueprint.apply', call, 404, 'not_found', keyed('refused'))
  await s.refused('blueprint.protect', { blueprint_key: 'free', protected: true }, 404, 'not_found')
  t.strictSame(await s.ok('blueprint.delete', { blueprint_key: 'free' }), {
    status: 'deleted',
    blueprint_key: 'free',
    deleted: [],
    retained: [],
  })
  t.ok(Date.now() - from < MAX_CALL_MS)
})
