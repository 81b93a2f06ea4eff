/**
 * Individual histories of blueprints with real actors, and the death of a gateway at every step.
 */
import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import { isRefusal } from '../../../protocol/errors.ts'
import type { Request } from './graphs.ts'
import {
  apply,
  bindingsIn,
  checkBindings,
  checkUnchanged,
  exported,
  IDENTITY,
  interrupted,
  preview,
  resourcesOf,
  shape,
  stateOf,
  stepsOfApply,
} from './play.ts'
import { openStore, PROJECT, type Store } from './world.ts'

const open = async (t: Test): Promise<Store> => {
  const store = await openStore(1)
  t.teardown(() => store.close())
  return store
}
const request = (resources: object, more: object = {}): Request =>
  ({ ...more, resources }) as Request
const done = async (store: Store, one: Request, more: object = {}) => {
  const outcome = await apply(store.gateway(), one, more)
  assert.equal(outcome.refused, undefined, JSON.stringify(outcome.refused))
  return outcome.changes.map(
    ({ resource_type, key, action }) => `${resource_type}/${key} ${action}`,
  )
}
/** Returns the number of the first step of an apply after an event of this type is committed. */
async function stepAfter(store: Store, one: Request, type: string): Promise<number> {
  const steps = await stepsOfApply(await store.fork(90), one)
  for (let at = 1; at <= steps; at++) {
    const fork = await store.fork(100 + at)
    const before = fork.length()
    await interrupted(fork, one, at)
    const seen = fork.eventsSince(before).some((event) => event.type === type)
    fork.close()
    if (seen) return at
  }
  throw new Error(`${type} does not happen`)
}

const sleeping = { kind: 'sleep', config: { duration: '1s' } }
const columns = [{ name: 'id', type: 'string', required: true }]
const table = { name: 'tickets', schema: { columns, identity_column: 'id' } }
const before = request({
  actions: [{ key: 'work', name: 'work', type: 'worker', description: 'before' }],
  skills: [{ key: 'old', name: 'Tone', instructions: 'Be kind.' }],
})
const after = request(
  {
    tables: [{ key: 'tickets', ...table }],
    actions: [{ key: 'work', name: 'work', type: 'worker', description: 'after' }],
    skills: [{ key: 'tone', name: 'Tone', title: 'The tone', moved_from: 'old' }],
    toolkits: [{ key: 'kit', name: 'Kit', actions: [{ selector: 'work' }] }],
    agents: [
      { key: 'helper', name: 'helper', toolkits: [{ key: 'kit' }], skills: [{ key: 'tone' }] },
    ],
    loops: [
      {
        key: 'sort',
        name: 'Sort',
        agent: { key: 'helper' },
        steps: [{ id: 'work', kind: 'action', config: { action_name: 'work' } }],
        triggers: [{ kind: 'http', key: 'form', config: { http_handle: 'sort-tickets' } }],
      },
    ],
  },
  { protect_resources: true },
)

t.test('a gateway dies at every step of an apply', { timeout: 300_000 }, async (t) => {
  const base = await open(t)
  await done(base, before)
  const clean = await base.fork(2)
  t.teardown(() => clean.close())
  await done(clean, after)
  const state = await stateOf(clean)
  const steps = await stepsOfApply(await base.fork(3), after)
  t.ok(steps > 40, `${steps} steps`)
  let different = 0
  for (let at = 1; at <= steps; at++) {
    const store = await base.fork(at + 3)
    await interrupted(store, after, at)
    checkBindings(store)
    await done(store, after)
    checkBindings(store)
    const now = await stateOf(store)
    if (JSON.stringify(now) !== JSON.stringify(state)) {
      different++
      t.strictSame(now, state, `after a death at step ${at}`)
    }
    await checkUnchanged(store, after)
    store.close()
  }
  t.equal(different, 0)
})

t.test('an interrupted creation is found, also under a new key', async (t) => {
  const store = await open(t)
  const first = request({ tables: [{ key: 'x', ...table }] })
  await interrupted(store, first, await stepAfter(store, first, 'table.created'))
  t.strictSame(await done(store, request({ tables: [{ key: 'y', ...table, moved_from: 'x' }] })), [
    'table/y unchanged',
  ])
  const both = request({
    tables: [
      { key: 'y', ...table },
      { key: 'x', ...table, name: 'other' },
    ],
  })
  t.strictSame(await done(store, both), ['table/y unchanged', 'table/x created'])
  checkBindings(store)
  await checkUnchanged(store, both)
})
t.test('an interrupted creation whose resource was deleted since', async (t) => {
  const types = {
    table: request({ tables: [{ key: 'x', ...table }] }),
    loop: request({ loops: [{ key: 'x', name: 'L' }] }),
    agent: request({ agents: [{ key: 'x', name: 'A' }] }),
    skill: request({ skills: [{ key: 'x', name: 'S' }] }),
    workflow: request({
      workflows: [
        {
          key: 'x',
          name: 'W',
          handle: 'w',
          spec: { steps: [sleeping] },
        },
      ],
    }),
  } as const
  for (const [type, one] of Object.entries(types)) {
    const store = await open(t)
    await interrupted(store, one, await stepAfter(store, one, `${type}.created`))
    const [made] = await resourcesOf(store)
    t.equal(made?.type, type)
    await store.gateway().command(`${type}.delete` as 'skill.delete', {}, { id: made?.id ?? '' })
    t.strictSame(await resourcesOf(store), [])
    t.strictSame(await done(store, one), [`${type}/x created`])
    checkBindings(store)
    await checkUnchanged(store, one)
  }
})
t.test('a creation that arrives while the repeat of its apply reads the project', async (t) => {
  const store = await open(t)
  const one = request({ actions: [{ key: 'x', name: 'work', type: 'worker' }] })
  const at = (await stepAfter(store, one, 'action.created')) - 1
  const arrive = await interrupted(store, one, at)
  t.strictSame(await resourcesOf(store), [])
  let bindingsRead = () => {}
  const read = new Promise<void>((resolve) => {
    bindingsRead = resolve
  })
  const seen = new Map<string, number>()
  const again = await apply(
    store.gateway((name) => {
      const nth = (seen.get(name) ?? 0) + 1
      seen.set(name, nth)
      if (name === 'blueprint_bindings' && nth === 2) bindingsRead()
      return name === 'resources' && nth === 1 ? read.then(arrive) : undefined
    }),
    one,
  )
  t.equal(again.refused, undefined, JSON.stringify(again.refused))
  t.match(again.changes, [{ key: 'x', action: 'unchanged' }])
  checkBindings(store)
  await checkUnchanged(store, one)
})
t.test('a name that is taken between the plan and its command', async (t) => {
  const types = {
    channel: request({ channels: [{ key: 'x', name: 'channel-x' }] }),
    environment: request({ environments: [{ key: 'x', name: 'env-x', provider: 'local' }] }),
    table: request({ tables: [{ key: 'x', ...table }] }),
    action: request({ actions: [{ key: 'x', name: 'work', type: 'worker' }] }),
  } as const
  for (const [type, one] of Object.entries(types)) {
    const store = await open(t)
    const [input] = Object.values(one.resources)[0] ?? []
    const { key: _, type: endpoint_kind, ...body } = input as unknown as Record<string, unknown>
    let made: Promise<unknown> | undefined
    const create = async () => {
      await store.gateway().command(`${type}.create` as 'skill.create', {
        ...body,
        ...(endpoint_kind !== undefined && { endpoint_kind }),
      })
    }
    const applied = await apply(
      store.gateway((name) =>
        made === undefined && /^(blueprint\.reserve|.*\.create)$/.test(name)
          ? ((made = create()) as Promise<void>)
          : undefined,
      ),
      one,
    )
    t.equal(applied.refused, undefined, JSON.stringify(applied.refused))
    t.match(applied.changes, [{ key: 'x', action: 'adopted' }], type)
    checkBindings(store)
    await checkUnchanged(store, one)
  }
})
t.test('an interrupted creation of a workflow whose handle was given up since', async (t) => {
  const store = await open(t)
  const one = request({
    workflows: [{ key: 'x', name: 'W', handle: 'w', spec: { steps: [sleeping] } }],
  })
  await interrupted(store, one, await stepAfter(store, one, 'handle.reserved'))
  t.strictSame(await resourcesOf(store), [])
  await store.clock.advance(3_600_000)
  t.strictSame(await done(store, one), ['workflow/x created'])
  checkBindings(store)
  await checkUnchanged(store, one)
})
t.test('an environment that its policy destroys is created again', async (t) => {
  const store = await open(t)
  const one = request({
    environments: [{ key: 'e', name: 'env-e', provider: 'local' }],
  })
  await done(store, one)
  const [known] = await resourcesOf(store)
  const { world } = store.gateway().edge
  await world.command({
    project: PROJECT,
    kind: 'environment',
    id: known?.id ?? '',
    command_id: 'remove',
    name: 'environment.remove',
    input: {},
    origin: { at: world.now(), principal: { type: 'system', id: 'test' } },
  } as never)
  await store.clock.advance(1000)
  t.strictSame(await resourcesOf(store), [], 'it is destroyed')
  t.strictSame(bindingsIn(store), [], 'without its binding')
  t.strictSame(await done(store, one), ['environment/e created'])
  checkBindings(store)
  await checkUnchanged(store, one)
})
t.test('an alias of a provider is the provider', async (t) => {
  const store = await open(t)
  const one = request({ environments: [{ key: 'e', name: 'env-e', provider: 'sprites' }] })
  t.strictSame(await done(store, one), ['environment/e created'])
  await checkUnchanged(store, one)
})
t.test('secrets are referred to by their names', async (t) => {
  const store = await open(t)
  const one = request({ secrets: [{ key: 's', name: 'crm' }] })
  t.match((await preview(store.gateway(), one)).refused, { refused: 'not_found' })
  const put = await store
    .gateway()
    .command('secret.put', { entries: { token: 'geheim' } }, { secret_name: 'crm' })
  t.notOk(isRefusal(put), JSON.stringify(put))
  t.strictSame(await done(store, one), ['secret/s unchanged'])
  t.strictSame(bindingsIn(store), [])
})
t.test('a reference by id names a resource of the right type', async (t) => {
  const store = await open(t)
  await done(store, request({ skills: [{ key: 's', name: 'S' }] }))
  const [skill] = await resourcesOf(store)
  const wrong = request({ agents: [{ key: 'a', name: 'a', toolkits: [{ id: skill?.id }] }] })
  t.match((await preview(store.gateway(), wrong)).refused, { refused: 'not_found' })
})
t.test('a text that looks like a reference stays', async (t) => {
  const store = await open(t)
  const one = request({ skills: [{ key: 's', name: 'S', instructions: '=skill/s' }] })
  await done(store, one)
  t.match(await resourcesOf(store), [{ record: { instructions: '=skill/s' } }])
})
t.test('references to new resources are no drift', async (t) => {
  const store = await open(t)
  await done(store, before)
  await done(store, after)
  const drift = await store.gateway().query('blueprint.drift', IDENTITY)
  t.notOk(isRefusal(drift))
  for (const { state } of (drift as unknown as { body: { items: { state: string }[] } }).body.items)
    t.equal(state, 'unchanged')
})
t.test('a reference to a resource that the same request prunes', async (t) => {
  const store = await open(t)
  const toolkits = [{ key: 'kit', name: 'Kit' }]
  await done(store, request({ toolkits, agents: [{ key: 'a', name: 'a' }] }))
  for (const reference of [{ key: 'kit' }, { blueprint_ref: { namespace: 'ops', key: 'kit' } }]) {
    const one = request({ agents: [{ key: 'a', name: 'a', toolkits: [reference] }] })
    t.equal((await preview(store.gateway(), one)).refused, undefined)
    t.match((await preview(store.gateway(), one, { prune: true })).refused, {
      refused: 'conflict',
      details: { resource_type: 'toolkit', field: 'resources.agents[0].toolkits[0]' },
    })
  }
})
t.test('pruning does what its preview said', async (t) => {
  const store = await open(t)
  await done(store, before)
  await store.gateway().command('skill.create', { name: 'Adopted', instructions: 'x' })
  await done(store, request({ skills: [{ key: 'adopted', name: 'Adopted' }] }))
  const one = request({ actions: [{ key: 'work', name: 'work', type: 'worker' }] })
  const shown = await preview(store.gateway(), one, { prune: true })
  t.match(
    (await apply(store.gateway(), one, { prune: true })).refused,
    { refused: 'bad_request' },
    'plan_id is required',
  )
  const pruned = await apply(store.gateway(), one, { prune: true, plan_id: shown.plan_id })
  t.strictSame(shape(pruned), shape(shown))
  t.strictSame(pruned.changes.map(({ key, action }) => [key, action]).sort(), [
    ['adopted', 'released'],
    ['old', 'deleted'],
    ['work', 'unchanged'],
  ])
  t.strictSame(
    (await resourcesOf(store)).map(({ record, binding }) => [record['name'], binding?.key]),
    [
      ['work', 'work'],
      ['Adopted', undefined],
    ],
  )
})
t.test('a plan_id is refused after the project has moved', async (t) => {
  const store = await open(t)
  await done(store, before)
  const shown = await preview(store.gateway(), after)
  const id = (await resourcesOf(store)).find(({ type }) => type === 'skill')?.id ?? ''
  await store.clock.advance(10)
  await store.gateway().command('skill.replace', { name: 'Tone', instructions: 'x' }, { id })
  const length = store.length()
  const refused = await apply(store.gateway(), { ...after, plan_id: shown.plan_id })
  t.match(refused.refused, { refused: 'blueprint_plan_outdated' })
  t.strictSame(
    store.eventsSince(length).filter(({ kind }) => kind !== 'blueprint'),
    [],
  )
})
t.test('a loop of the project keeps no agent that was deleted, when it is exported', async (t) => {
  const store = await open(t)
  await done(store, before)
  await done(store, { ...after, protect_resources: false })
  const id = (await resourcesOf(store)).find(({ type }) => type === 'agent')?.id ?? ''
  await store.gateway().command('agent.delete', {}, { id })
  const { loops } = (await exported(store)).resources
  t.equal(loops?.[0]?.['agent'], undefined)
})
