/** Loops in blueprints: a preview returns the refusals of the apply. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const apply = (resources: Open, more: Open = {}) => s.ok('blueprint.apply', { resources, ...more })
const refused = (resources: Open, status: number, code: string, more: Open = {}) =>
  s.refused('blueprint.apply', { resources, ...more }, status, code)

t.test('a preview returns the refusals of loops that depend on the stored loop', async (t) => {
  const identity = { blueprint_key: 'foreseen-loops' }
  const nap = [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }]
  const handle = { config: { http_handle: 'foreseen' } }
  const signed = (key: string, signing_secret = 'a secret of it') => ({
    settings: { http_triggers: { [key]: { signing_secret } } },
  })
  const loop = (more: Open) => ({ loops: [{ key: 'l', name: 'Foreseen', ...more }] })
  const triggers = [{ kind: 'http', key: 'in', ...handle }]
  /** Returns the fields of the refusal, after a comparison of the preview with the apply. */
  const refusedFields = async (more: Open) => {
    const preview = await refused(loop(more), 400, 'bad_request', { ...identity, mode: 'preview' })
    const applied = await refused(loop(more), 400, 'bad_request', identity)
    t.strictSame(preview, applied)
    return fieldsOf(preview)
  }
  t.strictSame(await refusedFields({ status: 'active' }), ['resources.loops[0].status'])
  t.strictSame(await refusedFields({ steps: nap, triggers, ...signed('in', 'short') }), [
    'resources.loops[0].settings.http_triggers.in.signing_secret',
  ])
  t.strictSame(await refusedFields({ steps: nap, triggers, ...signed('inn') }), [
    'resources.loops[0].settings.http_triggers.inn',
  ])
  const misspelt = { settings: { http_triggers: { in: { secrte: 'a secret of it' } } } }
  t.strictSame(await refusedFields({ steps: nap, triggers, ...misspelt }), [
    'resources.loops[0].settings.http_triggers.in.secrte',
  ])
  await apply(loop({ steps: nap, triggers, ...signed('in') }), identity)
  t.strictSame(await refusedFields(misspelt), [
    'resources.loops[0].settings.http_triggers.in.secrte',
  ])
  const renamed = [{ kind: 'http', key: 'out', ...handle }]
  t.strictSame(await refusedFields({ triggers: renamed }), ['resources.loops[0].triggers[0].key'])
  t.strictSame(await refusedFields({ triggers: renamed, ...signed('out', '[redacted]') }), [
    'resources.loops[0].settings.http_triggers.out.signing_secret',
  ])
  const drafts = { blueprint_key: 'foreseen-drafts' }
  await apply({ loops: [{ key: 'd', name: 'Draft' }] }, drafts)
  const active = { loops: [{ key: 'd', name: 'Draft', status: 'active' }] }
  t.strictSame(
    fieldsOf(await refused(active, 400, 'bad_request', { ...drafts, mode: 'preview' })),
    ['resources.loops[0].status'],
  )
})

t.test('a default of a configuration has the declared type', async (t) => {
  const nap = [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }]
  const config = { n: { type: 'integer', default: 1 }, any: {} }
  const wrong = { default_config: { n: 'abc', any: 'x', other: 1 } }
  const fields = { details: { fields: [{ field: 'default_config.n', expected: 'integer' }] } }
  const body = { name: 'Typed defaults', steps: nap, config }
  t.match(await s.refused('loop.create', { ...body, ...wrong }, 400, 'bad_request'), fields)
  const { id } = await s.ok('loop.create', { ...body, default_config: { n: 2, other: 1 } })
  t.match(await s.refused('loop.update', { id, ...wrong }, 400, 'bad_request'), fields)
  const texts = { id, config: { n: { type: 'string' } } }
  t.match(await s.refused('loop.update', texts, 400, 'bad_request'), {
    details: { fields: [{ field: 'default_config.n', expected: 'string' }] },
  })
  await s.ok('loop.update', { ...texts, default_config: { n: null } })
  await s.ok('loop.update', { id, default_config: { n: 'abc' } })
  const loops = [{ key: 'l', ...body, name: 'Typed', ...wrong }]
  for (const mode of ['preview', 'apply'])
    t.strictSame(
      fieldsOf(await refused({ loops }, 400, 'bad_request', { blueprint_key: 'typed', mode })),
      ['resources.loops[0].default_config.n'],
    )
})

t.test('a preview refuses to delete an action that an active loop calls', async (t) => {
  const identity = { blueprint_key: 'called' }
  const actions = [{ key: 'a', name: 'called', endpoint: 'https://example.org/called' }]
  const calls = [{ kind: 'action', config: { action_name: 'called', parameters: {} } }]
  const nap = [{ kind: 'sleep', config: { duration: '0' } }]
  const own = (steps: unknown) => [{ key: 'l', name: 'Own caller', status: 'active', steps }]
  await apply({ actions, loops: own(calls) }, identity)
  const other = await s.ok('loop.create', { name: 'Other caller', steps: calls })
  const pruning = { ...identity, mode: 'preview', prune: true, include: ['plan'] }
  t.match(await refused({ loops: own(nap) }, 409, 'conflict', pruning), {
    details: { resource_type: 'action', key: 'a', loop_ids: [other['id']], loop_count: 1 },
  })
  await refused({ loops: own(calls) }, 409, 'conflict', pruning)
  await s.ok('loop.update', { id: other['id'], status: 'paused' })
  await refused({ loops: own(calls) }, 409, 'conflict', pruning)
  const { plan_id } = await apply({ loops: own(nap) }, pruning)
  await apply({ loops: own(nap) }, { ...identity, prune: true, plan_id })
})

t.test('a step starts runs only of loops of the project', async (t) => {
  const starts = (loop_id: unknown) => [{ kind: 'loop', config: { loop_id } }]
  const unknown = starts('loop_01M8MK9K2CQY20HVAM8FEP3DXP')
  const field = 'steps[0].config.loop_id'
  const expected = (path: string) => ({
    details: { fields: [{ field: path, message: 'there is no such loop in this project' }] },
  })
  const { id } = await s.ok('loop.create', { name: 'Started', steps: [] })
  const { id: other } = await s.ok('loop.create', { name: 'Starts', steps: starts(id) })
  await s.ok('loop.update', { id, steps: starts(other) })
  const { id: flow } = await s.ok('workflow.create', {
    name: 'Starts',
    spec: { steps: starts(id) },
  })
  for (const [name, input, path] of [
    ['loop.create', { name: 'Unknown', steps: unknown }, field],
    ['loop.update', { id, steps: unknown }, field],
    ['workflow.create', { name: 'Unknown', spec: { steps: unknown } }, `spec.${field}`],
    ['workflow.update', { id: flow, spec: { steps: unknown } }, `spec.${field}`],
  ] as const)
    t.match(await s.refused(name, input, 400, 'bad_request'), expected(path))
  const loops = [{ key: 'l', name: 'Starts unknown', steps: unknown }]
  for (const mode of ['preview', 'apply'])
    t.match(
      await refused({ loops }, 400, 'bad_request', { blueprint_key: 'starts', mode }),
      expected(`resources.loops[0].${field}`),
    )
})

t.test('a preview refuses handles of triggers that another loop has', async (t) => {
  const identity = { blueprint_key: 'handles' }
  const nap = [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }]
  const loop = (key: string, http_handle: string) => ({
    key,
    name: `Handle ${key}`,
    steps: nap,
    triggers: [{ kind: 'http', key: 'in', config: { http_handle } }],
  })
  const { id: foreign } = await s.ok('loop.create', loopBody(loop('foreign', 'handle-foreign')))
  const both = async (...loops: Open[]) => {
    const preview = { ...identity, mode: 'preview' }
    const expected = { details: { resource_type: 'loop', field: 'http_handle' } }
    t.match(await refused({ loops }, 409, 'already_exists', preview), expected)
    t.match(await refused({ loops }, 409, 'already_exists', identity), expected)
  }
  await both(loop('a', 'handle-foreign'))
  await both(loop('a', 'handle-a'), loop('b', 'handle-a'))
  const { items } = await s.ok('loop.list')
  t.notMatch(JSON.stringify(items), /Handle [ab]/, 'a refused apply changes nothing')
  await apply({ loops: [loop('a', 'handle-a')] }, identity)
  await apply({ loops: [loop('a', 'handle-a')] }, { ...identity, mode: 'preview' })
  await both(loop('a', 'handle-foreign'))
  const moved = { loops: [loop('a', 'handle-new'), loop('b', 'handle-a')] }
  await apply(moved, { ...identity, mode: 'preview' })
  await s.ok('loop.delete', { id: foreign })
})
const loopBody = ({ key: _, ...body }: Open): Open => body
