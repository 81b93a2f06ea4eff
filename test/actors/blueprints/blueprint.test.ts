/** The actor of a blueprint: one holder at a time, reservations, and recorded results. */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { blueprintActor } from '../../../actors/blueprints/blueprint.ts'
import { HOLD_MS } from '../../../protocol/blueprints/events.ts'
import { given, type Scene, START } from '../../support/given.ts'

const actor = defineActor(blueprintActor)
const identity = { namespace: 'ops', blueprint_key: 'desk' }
const hold = (scene: Scene<unknown>, holder = 'one', at = START) =>
  scene.when('blueprint.hold', { holder, ...identity }, { at })
const held = hold(given(actor))
const reserve = (
  scene: Scene<unknown>,
  ids: Record<string, string>,
  replace: string[] = [],
  holder = 'one',
) => scene.when('blueprint.reserve', { holder, ids, replace })
const result = (...changes: string[]) => ({
  status: 'applied',
  ...identity,
  blueprint_version: '1',
  changes: changes.map((text) => {
    const [place = '', action = ''] = text.split(' ')
    const [resource_type, key] = place.split('/')
    return { resource_type, key, action }
  }),
  bindings: [],
})

t.test('a blueprint has one holder, until its hold ends', async (t) => {
  t.strictSame(held.events, [
    { type: 'blueprint.held', holder: 'one', until: START + HOLD_MS, ...identity },
  ])
  t.strictSame(held.reply, { holder: 'one' })
  t.equal(hold(held, 'two', START + HOLD_MS - 1).refused?.refused, 'blueprint_busy')
  t.match(hold(held, 'two', START + HOLD_MS).reply, { holder: 'two' })
  t.strictSame(
    given(actor).when('blueprint.hold', { holder: 'one', namespace: '', blueprint_key: 'desk' })
      .events,
    [{ type: 'blueprint.held', holder: 'one', until: START + HOLD_MS, blueprint_key: 'desk' }],
  )
})
t.test('a renewal extends the hold', async (t) => {
  const renewed = hold(held, 'one', START + HOLD_MS / 2)
  t.equal(hold(renewed, 'two', START + HOLD_MS).refused?.refused, 'blueprint_busy')
  t.equal(hold(renewed, 'two', START + 1.5 * HOLD_MS).refused, undefined)
  const taken = hold(held, 'two', START + HOLD_MS)
  t.equal(hold(taken, 'one', START + HOLD_MS).refused?.refused, 'blueprint_busy', 'not afterwards')
})
t.test('a release ends the hold of its holder only', async (t) => {
  const released = held.when('blueprint.release', { holder: 'one' })
  t.strictSame(released.events, [{ type: 'blueprint.released' }])
  t.equal(hold(released, 'two').refused, undefined)
  t.strictSame(held.when('blueprint.release', { holder: 'two' }).events, [])
  t.strictSame(given(actor).when('blueprint.release', { holder: 'one' }).events, [])
})
t.test('earlier reservations take precedence, also after the holder has changed', async (t) => {
  const first = reserve(held, { 'skill/a': 'skill_1' })
  t.strictSame(first.reply, { ids: { 'skill/a': 'skill_1' } })
  const taken = hold(first, 'two', START + HOLD_MS)
  const second = reserve(taken, { 'skill/a': 'skill_2', 'skill/b': 'skill_3' }, [], 'two')
  t.strictSame(second.reply, { ids: { 'skill/a': 'skill_1', 'skill/b': 'skill_3' } })
  t.strictSame(
    reserve(second, { 'skill/a': 'skill_9' }, ['skill/a'], 'two').reply,
    { ids: { 'skill/a': 'skill_9' } },
    'a reservation that is given up',
  )
  t.equal(reserve(taken, { 'skill/b': 'skill_4' }, [], 'one').refused?.refused, 'blueprint_busy')
  t.equal(
    reserve(given(actor), { 'skill/a': 'skill_1' }).refused?.refused,
    'blueprint_busy',
    'without a hold',
  )
  t.strictSame(
    reserve(held, { 'skill/constructor': 'skill_1' }).reply,
    { ids: { 'skill/constructor': 'skill_1' } },
    'a key is not a member of every object',
  )
})
t.test('a release keeps the reservations, because resources may have been created', async (t) => {
  const released = reserve(held, { 'skill/a': 'skill_1' }).when('blueprint.release', {
    holder: 'one',
  })
  t.strictSame(reserve(hold(released), { 'skill/a': 'skill_2' }).reply, {
    ids: { 'skill/a': 'skill_1' },
  })
})
t.test(
  'an apply is recorded with its counts, and uses the reservations that it names',
  async (t) => {
    const reserved = reserve(held, { 'skill/a': 'skill_1', 'skill/b': 'skill_2' })
    const applied = reserved.when('blueprint.apply', {
      holder: 'one',
      result: result('skill/a created', 'agent/x updated', 'agent/y updated'),
    })
    t.strictSame(applied.events, [
      {
        type: 'blueprint.applied',
        ...identity,
        blueprint_version: '1',
        counts: { created: 1, updated: 2 },
        used: ['skill/a', 'agent/x', 'agent/y'],
      },
    ])
    t.match(applied.reply, { status: 'applied', blueprint_version: '1' })
    const again = hold(applied, 'two')
    t.equal(again.refused, undefined, 'the hold has ended')
    t.strictSame(reserve(again, { 'skill/a': 'n_1', 'skill/b': 'n_2' }, [], 'two').reply, {
      ids: { 'skill/a': 'n_1', 'skill/b': 'skill_2' },
    })
  },
)
t.test('protection and deletion are recorded', async (t) => {
  const items = [{ resource_type: 'skill', key: 'a', resource_id: 'skill_1' }]
  const protect = held.when('blueprint.protect', {
    holder: 'one',
    items,
    protected: true,
    ...identity,
  })
  t.strictSame(protect.events, [{ type: 'blueprint.protection_set', protected: true, ...identity }])
  t.strictSame(protect.reply, { items })
  t.equal(hold(protect, 'two').refused, undefined, 'the hold has ended')
  const deleted = reserve(held, { 'skill/a': 'skill_1' }).when('blueprint.delete', {
    holder: 'one',
    result: { status: 'deleted', ...identity, deleted: items, retained: [] },
  })
  t.strictSame(deleted.events, [
    { type: 'blueprint.deleted', ...identity, counts: { deleted: 1, retained: 0 } },
  ])
  t.strictSame(
    reserve(hold(deleted), { 'skill/a': 'skill_2' }).reply,
    { ids: { 'skill/a': 'skill_2' } },
    'its reservations have ended',
  )
})
t.test('only the holder records a result', async (t) => {
  const taken = hold(held, 'two', START + HOLD_MS)
  for (const [name, input] of [
    ['blueprint.apply', { result: result() }],
    ['blueprint.protect', { items: [], protected: true }],
    ['blueprint.delete', { result: { deleted: [], retained: [] } }],
  ] as const) {
    t.equal(taken.when(name, { holder: 'one', ...input }).refused?.refused, 'blueprint_busy', name)
    t.equal(
      given(actor).when(name, { holder: '', ...input }).refused?.refused,
      'blueprint_busy',
      'a request that the actor does not remember',
    )
  }
})
