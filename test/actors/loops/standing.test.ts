/**
 * The data that a project stores about its loops. Invariants: an action that an active loop calls
 * cannot be deleted; loops end with their project.
 */
import t from 'tap'
import { defineActor, type Effect } from '../../../actors/actor.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import { makeId } from '../../../protocol/ids.ts'
import { played } from '../support/played.ts'
import { ORGANIZATION, Yard } from './yard.ts'

const PRJ = makeId('project', 0, new Uint8Array(10), 3)
const project = () =>
  played(defineActor(projectActor({ brand: 'Service' })), {
    project: PRJ,
    kind: 'project',
    id: PRJ,
  })
const call = (action_name: string, id = action_name) => ({
  id,
  kind: 'action',
  config: { action_name },
})
const told = (effects: readonly Effect[], name: string) =>
  effects.flatMap((effect) => ('tell' in effect && effect.tell.name === name ? [effect.tell] : []))

t.test('an active loop reports the actions that it may call', async (t) => {
  const yard = new Yard()
  const said = () => told(yard.effects(), 'loop.note').map(({ input }) => input)
  yard.create({
    steps: [
      call('b'),
      { id: 'p', kind: 'parallel', config: { branches: [{ id: 'x', steps: [call('a')] }] } },
      { id: 'e', kind: 'for_each', config: { items: [], steps: [call('b')] } },
    ],
    cleanup: [call('c')],
    definitions: { w: { id: 'wfd_1', version: 1, spec: { steps: [call('d')] } } },
  })
  t.strictSame(said(), [{ loop_id: yard.id, version: 1, actions: ['a', 'b', 'c', 'd'] }])
  yard.send('loop.update', { description: 'x', organization: ORGANIZATION })
  t.strictSame(said(), [], 'nothing new')
  yard.send('loop.update', { status: 'paused', organization: ORGANIZATION })
  t.strictSame(said(), [{ loop_id: yard.id, version: 2, actions: [] }])
  yard.send('loop.update', {
    status: 'active',
    steps: [call('a')],
    cleanup: [],
    definitions: {},
    organization: ORGANIZATION,
  })
  t.strictSame(said(), [{ loop_id: yard.id, version: 3, actions: ['a'] }])
  yard.send('loop.end', { organization: ORGANIZATION })
  t.strictSame(said(), [{ loop_id: yard.id, version: 4, actions: [], gone: true }])
  yard.send('loop.end', { organization: ORGANIZATION })
  t.strictSame(yard.events, [])
  const draft = new Yard()
  draft.create({ steps: [] })
  t.match(
    told(draft.effects(), 'loop.note'),
    [{ input: { version: 1, actions: [] } }],
    'a draft is reported, too',
  )
})

t.test('an action that an active loop calls cannot be deleted', async (t) => {
  const it = project()
  it.send('action.create', { name: 'act', endpoint_kind: 'worker' })
  const note = (version: number, actions: string[], more: object = {}) =>
    it.send('loop.note', { loop_id: 'loop_1', version, actions, ...more })
  note(2, ['act', 'other'])
  t.match(it.send('action.delete', { action_name: 'act' }), {
    refused: 'conflict',
    details: { loop_ids: ['loop_1'], loop_count: 1 },
  })
  note(1, [])
  t.match(
    it.send('action.delete', { action_name: 'act' }),
    { refused: 'conflict' },
    'a late note with an older version is ignored',
  )
  note(3, ['other'])
  t.equal(it.send('action.delete', { action_name: 'act' }), undefined)
  it.send('action.create', { name: 'act', endpoint_kind: 'worker' })
  note(4, ['act'])
  note(5, [], { gone: true })
  note(4, ['act'])
  t.equal(it.send('action.delete', { action_name: 'act' }), undefined)
})

t.test('loops end with their project, including those reported after its deletion', async (t) => {
  const it = project()
  const ids = Array.from({ length: 1201 }, (_, n) => `loop_${String(n).padStart(4, '0')}`)
  for (const loop_id of ids) it.send('loop.note', { loop_id, version: 1, actions: [] })
  it.send('loop.note', { loop_id: ids[0], version: 2, actions: [], gone: true })
  const ended: string[] = []
  for (let next: object | undefined = { organization: ORGANIZATION }; next; ) {
    it.send('project.end', next)
    t.ok(told(it.effects, 'loop.end').length <= 500)
    ended.push(...told(it.effects, 'loop.end').map(({ to }) => to.id))
    next = told(it.effects, 'project.end')[0]?.input as object | undefined
  }
  t.strictSame(ended, ids.slice(1))
  it.send('loop.note', { loop_id: 'loop_late', version: 1, actions: [] })
  t.match(told(it.effects, 'loop.end'), [
    { to: { kind: 'loop', id: 'loop_late' }, input: { organization: ORGANIZATION } },
  ])
  it.send('loop.note', { loop_id: 'loop_late', version: 2, actions: [], gone: true })
  t.strictSame(it.effects, [])
})
