/** Plans as a whole: steps, protection, orphans, pruning, and the identifier of a plan. */
import t from 'tap'
import { appliedHashes } from '../../../protocol/blueprints/compare.ts'
import type { ApplyRequest } from '../../../protocol/blueprints/schema.ts'
import { bound, free, hash, outcomes, planned, project, request, stepsOf } from './given.ts'

const skillOf = (id: string, key: string, name: string, more: object = {}) =>
  bound(free('skill', id, { name, instructions: 'i', tags: { a: '1' } }), key, {
    applied: appliedHashes('skill', { name }, hash),
    ...more,
  })
const skills = [{ key: 'a', name: 'n' }]

t.test('nothing differs: no command', async (t) => {
  const plan = planned(request({ skills }), project(skillOf('skill_1', 'a', 'n')))
  t.strictSame(outcomes(plan), ['skill/a unchanged skill_1'])
  t.strictSame(stepsOf(plan), [])
})
t.test('only changed fields are sent, and a replacing row also gets the others', async (t) => {
  const agent = bound(free('agent', 'agt_1', { name: 'n', status: 'active', toolkits: [] }), 'a')
  t.strictSame(
    stepsOf(
      planned(
        request({
          agents: [{ key: 'a', name: 'n', description: '', color: 'teal', toolkits: [] }],
        }),
        project(agent),
      ),
    ),
    [{ row: 'agent.update', body: { color: 'teal' } }],
  )
  t.strictSame(
    stepsOf(
      planned(
        request({ skills: [{ key: 'a', name: 'n', description: 'd' }] }),
        project(skillOf('skill_1', 'a', 'n')),
      ),
    ),
    [
      {
        row: 'skill.replace',
        body: { name: 'n', instructions: 'i', tags: { a: '1' }, description: 'd' },
      },
    ],
  )
})
t.test('lists of an agent: absent stays, empty clears, the order counts', async (t) => {
  const kits = ['kit_1', 'kit_2'].map((id) =>
    bound(free('toolkit', id, { name: id, actions: [] }), id),
  )
  const agent = bound(free('agent', 'agt_1', { name: 'n', toolkits: ['kit_1', 'kit_2'] }), 'a')
  const steps = (more: object) =>
    stepsOf(
      planned(request({ agents: [{ key: 'a', name: 'n', ...more }] }), project(agent, ...kits)),
    ).filter(({ row }) => row !== 'blueprint.bind')
  t.strictSame(steps({}), [])
  t.strictSame(steps({ toolkits: [{ key: 'kit_1' }, { key: 'kit_2' }] }), [])
  t.strictSame(steps({ toolkits: [] }), [
    { row: 'agent.assign_toolkits', body: { toolkit_ids: [] } },
  ])
  t.strictSame(steps({ toolkits: [{ key: 'kit_2' }, { key: 'kit_1' }] }), [
    { row: 'agent.assign_toolkits', body: { toolkit_ids: ['kit_2', 'kit_1'] } },
  ])
})
t.test('a change of the binding alone', async (t) => {
  const present = project(skillOf('skill_1', 'a', 'n'))
  const plan = planned(request({ skills }, { blueprint_version: '2' }), present)
  t.strictSame(outcomes(plan), ['skill/a unchanged skill_1'])
  t.strictSame(stepsOf(plan), [{ row: 'blueprint.bind', body: {} }])
  t.match(plan.changes[0]?.binding, { blueprint_version: '2' })
})
t.test('protect_resources: absent keeps, present sets every binding', async (t) => {
  const present = project(
    skillOf('skill_1', 'a', 'n', { protected: true }),
    skillOf('skill_2', 'b', 'm'),
    skillOf('skill_3', 'c', 'o', { protected: true }),
    skillOf('skill_4', 'a', 'p', { blueprint_key: 'other' }),
  )
  const protections = (protect_resources?: boolean) => {
    const plan = planned(
      request(
        { skills: [...skills, { key: 'new', name: 'x' }] },
        { ...(protect_resources !== undefined && { protect_resources }) },
      ),
      present,
    )
    return {
      requested: plan.changes.map(({ binding }) => binding?.protected),
      steps: plan.changes.map(({ steps }) => steps.map(({ row }) => row)),
      others: plan.rebound.map(({ key, binding }) => [key, binding?.protected]),
    }
  }
  t.strictSame(protections(), {
    requested: [true, false],
    steps: [[], ['skill.create']],
    others: [],
  })
  t.strictSame(protections(true), {
    requested: [true, true],
    steps: [[], ['skill.create']],
    others: [['b', true]],
  })
  t.strictSame(protections(false), {
    requested: [false, false],
    steps: [['blueprint.bind'], ['skill.create']],
    others: [['c', false]],
  })
})
t.test('orphans are listed, and pruned only on request', async (t) => {
  const present = project(
    skillOf('skill_1', 'a', 'n'),
    skillOf('skill_2', 'created', 'm'),
    skillOf('skill_3', 'adopted', 'o', { delete_on_destroy: false }),
    bound(free('loop', 'loop_1', { name: 'l', status: 'draft' }), 'l'),
    skillOf('skill_4', 'b', 'p', { namespace: 'x' }),
  )
  const plain = planned(request({ skills }), present)
  t.strictSame(
    plain.orphans.map(({ key }) => key),
    ['created', 'adopted', 'l'],
  )
  t.strictSame(outcomes(plain), ['skill/a unchanged skill_1'])
  const pruned = planned(request({ skills }, { prune: true, protect_resources: true }), present)
  t.strictSame(outcomes(pruned), [
    'skill/a unchanged skill_1',
    'loop/l deleted loop_1',
    'skill/created deleted skill_2',
    'skill/adopted released skill_3',
  ])
  t.strictSame(
    pruned.pruned.map(({ steps }) => steps.map(({ row }) => row)),
    [['loop.delete'], ['skill.delete'], ['blueprint.unbind']],
  )
  t.strictSame(pruned.rebound, [], 'what is pruned is not protected first')
})

const base = request(
  {
    skills: [{ key: 'a', name: 'n', tags: { a: '1', b: '2' } }],
    agents: [{ key: 'x', name: 'x', skills: [{ key: 'a' }] }],
  },
  { blueprint_version: '1' },
)
const present = project(
  skillOf('skill_1', 'a', 'n'),
  free('agent', 'agt_1', { name: 'x', skills: [] }),
  skillOf('skill_2', 'gone', 'm'),
)
const id = (one: ApplyRequest = base, of = present) => planned(one, of).plan_id

t.test('plan_id is equal for equal inputs, in any order of members', async (t) => {
  const reordered = {
    blueprint_version: '1',
    resources: {
      agents: [{ skills: [{ key: 'a' }], name: 'x', key: 'x' }],
      skills: [{ tags: { b: '2', a: '1' }, name: 'n', key: 'a' }],
    },
    blueprint_key: 'desk',
    namespace: 'ops',
  } as ApplyRequest
  t.equal(id(reordered), id())
  t.equal(id({ ...base, mode: 'preview' }), id({ ...base, mode: 'apply' }), 'of both modes')
  const moved = { ...present, resources: [...present.resources].reverse() }
  t.equal(id(base, moved), id(), 'the order in which the resources were read')
})
t.test('plan_id changes with everything on which the plan depends', async (t) => {
  const [skill, agent, gone] = present.resources
  if (!skill || !agent || !gone) throw new Error('the project has three resources')
  const others: [string, ApplyRequest, typeof present][] = [
    ['version of the blueprint', { ...base, blueprint_version: '2' }, present],
    ['identity', { ...base, blueprint_key: 'x' }, present],
    ['a value', request({ ...base.resources, skills: [{ key: 'a', name: 'z' }] }), present],
    ['protection', { ...base, protect_resources: true }, present],
    ['pruning', { ...base, prune: true }, present],
    [
      'a further resource',
      request({ ...base.resources, roles: [{ key: 'r', name: 'r', permissions: [] }] }),
      present,
    ],
    [
      'a changed record',
      base,
      project({ ...skill, updated_at: '2026-02-02T00:00:00.000Z' }, agent, gone),
    ],
    [
      'a changed binding',
      base,
      project(
        { ...skill, binding: { ...skill.binding, protected: true } } as typeof skill,
        agent,
        gone,
      ),
    ],
    ['a deleted resource', base, project(skill, gone)],
    ['an orphan', base, project(skill, agent)],
    ['another resource with the name', base, project(skill, { ...agent, id: 'agt_2' }, gone)],
  ]
  const seen = new Map([[id(), 'the base']])
  for (const [what, one, of] of others) {
    const plan_id = id(one, of)
    t.equal(seen.get(plan_id), undefined, what)
    seen.set(plan_id, what)
  }
  const secret = (token: string) =>
    id(
      request({ webhooks: [{ key: 'w', name: 'w', url: `https://x.example/?t=${token}` }] }),
      project(),
    )
  t.not(secret('one'), secret('two'), 'a secret')
})
