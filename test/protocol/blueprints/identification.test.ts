/** How a plan finds the resources of a request: bindings, former keys, names, and conflicts. */
import t from 'tap'
import type { ResourceTypeName } from '../../../protocol/blueprints/resources.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { bound, free, outcomes, planned, project, refusal, request, stepsOf } from './given.ts'

const other = { blueprint_key: 'other' }
const skill = (id: string, name: string) => free('skill', id, { name, instructions: '' })
const agent = (id: string, name: string) =>
  free('agent', id, { name, status: 'active', toolkits: [], skills: [] })

t.test('a binding comes before a name', async (t) => {
  const present = project(bound(agent('agt_1', 'old'), 'a'), agent('agt_2', 'free'))
  t.strictSame(outcomes(planned(request({ agents: [{ key: 'a', name: 'old' }] }), present)), [
    'agent/a unchanged agt_1',
  ])
  t.strictSame(outcomes(planned(request({ agents: [{ key: 'a', name: 'new' }] }), present)), [
    'agent/a updated agt_1',
  ])
  const { refused, details } = refusal(request({ agents: [{ key: 'a', name: 'free' }] }), present)
  t.equal(refused, 'already_exists', 'a bound agent does not take the name of another one')
  t.match(details, { resource_type: 'agent', key: 'a', resource_id: 'agt_2', name: 'free' })
})
t.test(
  'a binding of the same key in another blueprint, namespace or type is not used',
  async (t) => {
    for (const more of [{ blueprint_key: 'other' }, { namespace: 'x' }, { namespace: '' }])
      t.strictSame(
        outcomes(
          planned(
            request({ skills: [{ key: 'a', name: 'mine' }] }),
            project(bound(skill('skill_1', 'theirs'), 'a', more)),
          ),
        ),
        ['skill/a created'],
      )
    t.strictSame(
      outcomes(
        planned(
          request({ skills: [{ key: 'a', name: 'n' }] }),
          project(bound(agent('agt_1', 'n'), 'a')),
        ),
      ),
      ['skill/a created'],
    )
  },
)
t.test('empty texts are absent parts of an identity', async (t) => {
  const present = project(
    bound(free('skill', 'skill_1', { name: 'n', instructions: '' }), 'a', {
      namespace: '',
      blueprint_key: '',
    }),
  )
  const skills = [{ key: 'a', name: 'n' }]
  t.strictSame(outcomes(planned({ resources: { skills } }, present)), ['skill/a unchanged skill_1'])
  const plan = planned({ namespace: '', blueprint_key: '', resources: { skills } }, present)
  t.strictSame(plan.identity, {})
})
t.test('the adoption rules of every type', async (t) => {
  const types = Object.keys(resourceFacts) as ResourceTypeName[]
  for (const type of types) {
    const { array, adopt, match, rows } = resourceFacts[type]
    const input = { key: 'a', name: 'n', [match]: 'n', schema: {}, permissions: [], spec: {} }
    const record = { name: 'n', [match]: 'n', schema: {}, permissions: [], spec: {} }
    const known = (id: string) => free(type, id, record)
    const action = (...present: ReturnType<typeof known>[]) =>
      outcomes(planned(request({ [array]: [input] }), project(...present)))
    if (!rows) {
      t.strictSame(action(known('x_1')), [`${type}/a unchanged x_1`])
      t.equal(refusal(request({ [array]: [input] })).refused, 'not_found', type)
      continue
    }
    t.strictSame(action(), [`${type}/a created`])
    t.strictSame(
      action(known('x_1')),
      [adopt === 'never' ? `${type}/a created` : `${type}/a adopted x_1`],
      `${type}: ${adopt}`,
    )
    const owned = [request({ [array]: [input] }), project(bound(known('x_1'), 'k', other))] as const
    if (adopt === 'unique') {
      const { refused, details } = refusal(...owned)
      t.equal(refused, 'blueprint_owned_elsewhere', type)
      t.match(details, { resource_type: type, key: 'a', resource_id: 'x_1', owner: { key: 'k' } })
    } else t.strictSame(outcomes(planned(...owned)), [`${type}/a created`])
    if (adopt === 'single') {
      const twice = request({ [array]: [input] })
      const { refused, details } = refusal(twice, project(known('x_1'), known('x_2')))
      t.equal(refused, 'blueprint_ambiguous_name', type)
      t.match(details, { resource_type: type, key: 'a', resource_ids: ['x_1', 'x_2'] })
      t.strictSame(action(known('x_1'), bound(known('x_2'), 'k', other)), [`${type}/a adopted x_1`])
    }
  }
})
t.test('an adopted resource is not deleted with the blueprint, a created one is', async (t) => {
  const skills = [{ key: 'a', name: 'n' }]
  const created = planned(request({ skills })).changes[0]?.binding
  t.match(created, { key: 'a', delete_on_destroy: true, protected: false, namespace: 'ops' })
  const adopted = planned(request({ skills }), project(skill('skill_1', 'n'))).changes[0]
  t.match(adopted?.binding, { key: 'a', delete_on_destroy: false })
  t.strictSame(adopted?.steps, [{ row: 'blueprint.bind', body: {} }])
  const kept = planned(
    request({ skills }),
    project(bound(skill('skill_1', 'n'), 'a', { delete_on_destroy: false })),
  )
  t.match(kept.changes[0]?.binding, { delete_on_destroy: false })
})
t.test('a bound resource that was deleted is created again', async (t) => {
  const gone = bound(skill('skill_1', 'n'), 'a')
  const present = { ...project(gone), resources: [] }
  const plan = planned(request({ skills: [{ key: 'a', name: 'n' }] }), present)
  t.strictSame(outcomes(plan), ['skill/a created'])
  t.match(plan.changes[0]?.binding, { delete_on_destroy: true })
})
t.test('moved_from keeps the resource of the former key', async (t) => {
  const present = project(bound(skill('skill_1', 'n'), 'old', { applied: { name: 'x' } }))
  const moved = { key: 'new', name: 'n', moved_from: 'old' }
  const plan = planned(request({ skills: [moved] }), present)
  t.strictSame(outcomes(plan), ['skill/new unchanged skill_1'])
  t.strictSame(stepsOf(plan), [{ row: 'blueprint.bind', body: {} }])
  t.match(plan.changes[0]?.binding, { key: 'new' })
  t.strictSame(plan.orphans, [])
  t.strictSame(
    outcomes(planned(request({ skills: [moved, { key: 'old', name: 'n 2' }] }), present)),
    ['skill/new created', 'skill/old updated skill_1'],
    'a former key that the request still has keeps its resource',
  )
  const both = project(bound(skill('skill_1', 'n'), 'old'), bound(skill('skill_2', 'n'), 'new'))
  const again = planned(request({ skills: [moved] }), both)
  t.strictSame(outcomes(again), ['skill/new unchanged skill_2'])
  t.strictSame(
    again.orphans.map(({ key }) => key),
    ['old'],
  )
  t.strictSame(outcomes(planned(request({ skills: [moved] }))), ['skill/new created'])
})
t.test('two requested resources do not share one', async (t) => {
  const present = project(skill('skill_1', 'n'))
  const twice = request({
    skills: [
      { key: 'a', name: 'n' },
      { key: 'b', name: 'n' },
    ],
  })
  const { refused, details } = refusal(twice, present)
  t.equal(refused, 'blueprint_ambiguous_name')
  t.match(details, { key: 'b', resource_id: 'skill_1', field: 'resources.skills[1]' })
  t.match(
    refusal(
      request({
        skills: [
          { key: 'a', name: 'n' },
          { key: 'a', name: 'm' },
        ],
      }),
    ).details,
    { fields: [{ field: 'resources.skills[1].key' }] },
  )
  t.match(
    refusal(
      request({
        agents: [
          { key: 'a', name: 'n' },
          { key: 'b', name: 'n' },
        ],
      }),
    ).details,
    { fields: [{ field: 'resources.agents[1].name' }] },
  )
})
t.test('a name that is bound under another key of the blueprint names that key', async (t) => {
  const { refused, message } = refusal(
    request({ agents: [{ key: 'b', name: 'n' }] }),
    project(bound(agent('agt_1', 'n'), 'a')),
  )
  t.equal(refused, 'blueprint_owned_elsewhere')
  t.match(message, /under the key a; name that key in moved_from/)
})
t.test('two resources do not exchange their names, because a tier has no order', async (t) => {
  const { refused, details } = refusal(
    request({
      agents: [
        { key: 'a', name: 'two' },
        { key: 'b', name: 'one' },
      ],
    }),
    project(bound(agent('agt_1', 'one'), 'a'), bound(agent('agt_2', 'two'), 'b')),
  )
  t.equal(refused, 'already_exists')
  t.match(details, { key: 'a', resource_id: 'agt_2', field: 'resources.agents[0].name' })
})
t.test('immutable fields', async (t) => {
  const known = bound(free('action', 'act_1', { name: 'n', endpoint_kind: 'worker' }), 'a')
  for (const [field, input] of [
    ['name', { name: 'm', type: 'worker' }],
    ['type', { name: 'n', type: 'http' }],
  ] as const) {
    const { refused, details } = refusal(
      request({ actions: [{ key: 'a', ...input }] }),
      project(known),
    )
    t.equal(refused, 'blueprint_immutable_field')
    t.match(details, { resource_type: 'action', key: 'a', resource_id: 'act_1', field })
  }
  t.strictSame(
    outcomes(planned(request({ actions: [{ key: 'a', name: 'n' }] }), project(known))),
    ['action/a unchanged act_1'],
    'an omitted immutable field stays',
  )
  const http = bound(free('action', 'act_1', { name: 'n' }), 'a')
  t.strictSame(
    outcomes(planned(request({ actions: [{ key: 'a', name: 'n', type: 'http' }] }), project(http))),
    ['action/a unchanged act_1'],
    'the default equals an absent value',
  )
})
t.test('resources are planned tier after tier, and in the order of the request', async (t) => {
  t.strictSame(
    outcomes(
      planned(
        request({
          channels: [{ key: 'c', name: 'c' }],
          loops: [{ key: 'l', name: 'l' }],
          agents: [{ key: 'a', name: 'a' }],
          toolkits: [{ key: 't', name: 't' }],
          skills: [
            { key: 's2', name: 's2' },
            { key: 's1', name: 's1' },
          ],
          tables: [{ key: 't', name: 't', schema: {} }],
        }),
      ),
    ),
    [
      'table/t created',
      'skill/s2 created',
      'skill/s1 created',
      'toolkit/t created',
      'agent/a created',
      'loop/l created',
      'channel/c created',
    ],
  )
})
