/** References between resources: the three forms, their failures, and their resolution. */
import t from 'tap'
import {
  hasSymbol,
  idOf,
  isSymbol,
  placeOf,
  resolveReferences,
} from '../../../protocol/blueprints/references.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { bound, desk, free, planned, project, refusal, request, stepsOf } from './given.ts'

const kit = (id: string) => free('toolkit', id, { name: id, actions: [] })
const present = project(
  bound(kit('kit_own'), 'own'),
  bound(kit('kit_other'), 'shared', { blueprint_key: 'other' }),
  bound(kit('kit_third'), 'shared', { blueprint_key: 'third', namespace: 'x' }),
  bound(kit('kit_1'), 'twice', { blueprint_key: 'other' }),
  bound(kit('kit_2'), 'twice', { blueprint_key: 'third' }),
  bound(free('skill', 'skill_1', { name: 's', instructions: '' }), 'own'),
  kit('kit_free'),
)
const referable = (requested: [string, string | undefined][] = []) => ({
  identity: desk,
  requested: new Map(requested),
  bindings: present.bindings,
  exists: present.exists,
})
const find = (reference: object, requested?: [string, string | undefined][]) => {
  const found = idOf(reference, 'toolkit', 'resources.agents[0].toolkits[0]', referable(requested))
  return isRefusal(found) ? found.refused : found
}

t.test('by id', async (t) => {
  t.equal(find({ id: 'kit_free' }), 'kit_free')
  t.equal(find({ id: 'kit_none' }), 'not_found')
  t.equal(find({ id: 'skill_1' }), 'not_found', 'a resource of another type')
})
t.test('by key: first in the request, then among the bindings of the same identity', async (t) => {
  t.equal(find({ key: 'own' }), 'kit_own')
  t.equal(find({ key: 'own' }, [['toolkit/own', 'kit_new']]), 'kit_new')
  t.equal(find({ key: 'new' }, [['toolkit/new', undefined]]), '=toolkit/new')
  t.equal(find({ key: 'new' }, [['skill/new', undefined]]), 'not_found')
  t.equal(find({ key: 'shared' }), 'not_found', 'a key of another blueprint')
})
t.test('by the key of another blueprint', async (t) => {
  t.equal(find({ blueprint_ref: { namespace: 'ops', key: 'shared' } }), 'kit_other')
  t.equal(find({ blueprint_ref: { namespace: 'x', key: 'shared' } }), 'kit_third')
  t.equal(find({ blueprint_ref: { key: 'shared' } }), 'not_found', 'without a namespace')
  t.equal(find({ blueprint_ref: { namespace: '', key: 'shared' } }), 'not_found')
  t.equal(find({ blueprint_ref: { namespace: 'ops', key: 'none' } }), 'not_found')
  t.equal(
    find({ blueprint_ref: { namespace: 'ops', key: 'twice' } }),
    'blueprint_ambiguous_name',
    'two blueprints of the namespace have the key',
  )
})
t.test('none or several forms', async (t) => {
  for (const reference of [
    {},
    { id: 'kit_free', key: 'own' },
    { key: 'own', blueprint_ref: { key: 'own' } },
    { id: 'kit_free', key: 'own', blueprint_ref: { key: 'own' } },
  ])
    t.equal(find(reference), 'bad_request')
})
t.test('a refusal names the place of the reference', async (t) => {
  const agents = [{ key: 'a', name: 'a', skills: [{ key: 'own' }, { key: 'none' }] }]
  t.match(refusal(request({ agents }), present), {
    refused: 'not_found',
    details: { resource_type: 'skill', field: 'resources.agents[0].skills[1]', key: 'none' },
  })
  t.match(refusal(request({ loops: [{ key: 'l', name: 'l', agent: { id: 'agt_x' } }] })), {
    refused: 'not_found',
    details: { resource_type: 'agent', field: 'resources.loops[0].agent', id: 'agt_x' },
  })
  const same = [{ key: 'own' }, { id: 'kit_own' }]
  t.match(refusal(request({ agents: [{ key: 'a', name: 'a', toolkits: same }] }), present), {
    refused: 'bad_request',
    details: { fields: [{ field: 'resources.agents[0].toolkits[1]' }] },
  })
})
t.test('references in commands', async (t) => {
  const plan = planned(
    request({
      toolkits: [{ key: 'new', name: '=toolkit/new' }],
      agents: [{ key: 'a', name: 'a', toolkits: [{ key: 'new' }, { key: 'own' }], skills: [] }],
      loops: [{ key: 'l', name: 'l', agent: { key: 'a' } }],
    }),
    present,
  )
  t.strictSame(stepsOf(plan), [
    { row: 'toolkit.create', body: { name: '=toolkit/new' } },
    { row: 'agent.create', body: { name: 'a' } },
    { row: 'agent.assign_toolkits', body: { toolkit_ids: ['=toolkit/new', 'kit_own'] } },
    { row: 'loop.create', body: { status: 'draft', name: 'l', agent_id: '=agent/a' } },
  ])
  t.strictSame(
    plan.changes.map(({ symbolic }) => symbolic),
    [{}, { toolkits: ['=toolkit/new', 'kit_own'] }, { agent: '=agent/a' }],
  )
  const ids = { [placeOf('toolkit', 'new')]: 'kit_9', [placeOf('agent', 'a')]: 'agt_9' }
  t.strictSame(resolveReferences(['=toolkit/new', 'kit_own'], ids), ['kit_9', 'kit_own'])
  t.equal(resolveReferences('=agent/a', ids), 'agt_9')
  t.equal(resolveReferences('=agent/none', ids), '=agent/none')
  t.equal(resolveReferences('=agent/constructor', {}), '=agent/constructor')
  t.equal(resolveReferences(7, ids), 7)
  t.ok(isSymbol('=x'))
  t.notOk(isSymbol('x'))
  t.ok(hasSymbol(['x', '=x']))
  t.notOk(hasSymbol(['x']))
})
