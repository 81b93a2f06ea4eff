/**
 * Toolkits and skills over HTTP: records, imports, assignments to agents, and organization skills
 * that projects use.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, ids, listOf } from '../support/given.ts'

const s = await service({ BATON_SHARDS: '4' })
t.teardown(() => s.stop())
const agent = await s.ok('agent.create', { name: 'Helper' })
const at = { id: agent['id'] }
const kits = async () =>
  listOf(await s.ok('agent.toolkits', at)).map((one) => [one['toolkit_id'], one['position']])
const skilled = async () => listOf(await s.ok('agent.skills', at)).map((one) => one['skill_id'])

t.test(
  'a toolkit is created, replaced as a whole and deleted; system toolkits are read-only',
  async (t) => {
    const made = await s.ok('toolkit.create', {
      name: 'CRM',
      description: 'customers',
      actions: [{ selector_type: 'exact', selector: 'crm.find' }],
      tags: { team: 'crm' },
    })
    t.match(made, { id: /^kit_/, source: 'project', created_by: /^svc_/ })
    t.strictSame(await s.ok('toolkit.get', { id: made['id'] }), made)
    const replaced = await s.ok('toolkit.replace', { id: made['id'], name: 'CRM 2' })
    t.match(replaced, {
      name: 'CRM 2',
      actions: [],
      created_at: made['created_at'],
      updated_by: /^svc_/,
    })
    t.notOk('description' in replaced || 'tags' in replaced)
    const all = listOf(await s.ok('toolkit.list'))
    t.strictSame(
      all.map(({ source }) => source),
      ['system', 'system', 'project'],
    )
    t.strictSame(ids(listOf(await s.ok('toolkit.list', { include_system: false }))), [made['id']])
    const system = String(all[0]?.['id'])
    t.match(await s.ok('toolkit.get', { id: system }), { source: 'system' })
    await s.refused('toolkit.replace', { id: system, name: 'x' }, 403, 'forbidden')
    await s.refused('toolkit.delete', { id: system }, 403, 'forbidden')
    t.match(
      await s.ok('toolkit.create', { name: 'Old', actions: [{ action_name: 'crm.sync' }] }),
      { actions: [{ selector_type: 'exact', selector: 'crm.sync' }] },
      'the form of older clients',
    )
    t.strictSame(
      fieldsOf(
        await s.refused(
          'toolkit.create',
          { name: 'x', actions: [{ action_name: 'a', selector: 'b' }, { selector: 'b' }, {}] },
          400,
          'bad_request',
        ),
      ),
      [
        'actions[0].action_name',
        'actions[1].selector_type',
        'actions[2].selector_type',
        'actions[2].selector',
      ],
    )
    t.strictSame(
      fieldsOf(
        await s.refused(
          'toolkit.create',
          { name: 'x', actions: [{ selector_type: 'odd', selector: 'a b' }] },
          400,
          'bad_request',
        ),
      ).sort(),
      ['actions[0].selector', 'actions[0].selector_type'],
    )
    t.equal((await s.call('toolkit.delete', { id: made['id'] })).status, 204)
    for (const row of ['toolkit.get', 'toolkit.delete'] as const)
      await s.refused(row, { id: made['id'] }, 404, 'not_found')
    t.strictSame(
      listOf(await s.ok('audit.list', { resource_id: made['id'] })).map(({ action }) => action),
      ['delete', 'update', 'create'],
    )
  },
)

t.test("assigning toolkits replaces an agent's list in the given order", async (t) => {
  const [a, b] = [
    await s.ok('toolkit.create', { name: 'A' }),
    await s.ok('toolkit.create', { name: 'B' }),
  ]
  const put = (...toolkit_ids: unknown[]) => s.ok('agent.assign_toolkits', { ...at, toolkit_ids })
  const first = listOf(await put(b['id'], 'kit_system_memory', a['id']))
  t.match(first, [
    { agent_id: agent['id'], toolkit_id: b['id'], toolkit: { name: 'B' }, position: 0 },
    { toolkit: { source: 'system' }, position: 1 },
    { toolkit: { name: 'A' }, position: 2 },
  ])
  t.strictSame(listOf(await s.ok('agent.toolkits', at)), first)
  const second = listOf(await put(a['id'], b['id']))
  t.equal(
    second[1]?.['created_at'],
    first[0]?.['created_at'],
    'remaining assignments keep their date',
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.assign_toolkits',
        { ...at, toolkit_ids: [a['id'], 'kit_none'] },
        400,
        'bad_request',
      ),
    ),
    ['toolkit_ids[1]'],
  )
  await s.refused(
    'agent.assign_toolkits',
    { ...at, toolkit_ids: [a['id'], a['id']] },
    400,
    'bad_request',
  )
  t.strictSame(await kits(), [
    [a['id'], 0],
    [b['id'], 1],
  ])
  await s.ok('toolkit.delete', { id: a['id'] })
  t.strictSame(await kits(), [[b['id'], 0]], 'a deleted toolkit is removed from the agent')
  t.strictSame(listOf(await put()), [])
  await s.refused('agent.assign_toolkits', { id: 'agt_none', toolkit_ids: [] }, 404, 'not_found')
  await s.refused('agent.toolkits', { id: 'agt_none' }, 404, 'not_found')
  t.match(listOf(await s.ok('audit.list', { resource_id: agent['id'], action: 'update' }))[0], {
    resource_type: 'agent_assignment',
    resource_name: /./,
    changes: { toolkits: { to: [] } },
  })
})

t.test('skills are created, replaced, imported from Markdown, assigned and removed', async (t) => {
  const made = await s.ok('skill.create', {
    name: 'Triage',
    instructions: 'Sort by urgency.',
    allowed_tools: ['crm.*'],
    description: 'first look',
  })
  t.match(made, { id: /^skill_/, source: 'project', allowed_tools: ['crm.*'] })
  t.match(
    await s.ok('skill.replace', { id: made['id'], name: 'Triage', instructions: 'Sort by date.' }),
    { instructions: 'Sort by date.' },
  )
  t.notOk('allowed_tools' in (await s.ok('skill.get', { id: made['id'] })))
  const read = await s.ok('skill.import', {
    content:
      '---\nname: Refunds\ndescription: "Pay back: how"\nallowed-tools: [crm.find, pay.*]\n' +
      'tags:\n  team: pay\nlicense: MIT\n---\n\n# Steps\n\n1. Look.\n',
  })
  t.match(read, {
    name: 'Refunds',
    description: 'Pay back: how',
    allowed_tools: ['crm.find', 'pay.*'],
    tags: { team: 'pay' },
    instructions: '# Steps\n\n1. Look.',
  })
  t.match(await s.ok('skill.import', { content: '# Just text', name: 'Plain' }), {
    name: 'Plain',
    instructions: '# Just text',
  })
  t.match(await s.ok('skill.import', { content: '---\n---\ntext', name: 'Empty' }), {
    instructions: 'text',
  })
  t.match(
    await s.ok('skill.import', {
      content: '---\r\nname: Named\r\nallowed_tools: a.b, c.d\r\ntags: x, y\r\n---\r\ntext',
      name: 'Wins',
    }),
    { name: 'Wins', allowed_tools: ['a.b', 'c.d'], tags: { x: '', y: '' } },
  )
  for (const [content, field] of [
    ['# no name', 'name'],
    ['---\nname: x\n---\n', 'content'],
    ['---\nname: [a\n---\ntext', 'content'],
    ['---\n- a\n---\ntext', 'content'],
    ['---\nname: 7\n---\ntext', 'name'],
    [
      '---\na: &a [1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n' +
        'name: [*c,*c,*c,*c,*c]\n---\ntext',
      'content',
    ],
  ] as const)
    t.strictSame(
      fieldsOf(await s.refused('skill.import', { content }, 400, 'bad_request')),
      [field],
      content,
    )
  const given = listOf(
    await s.ok('agent.assign_skills', { ...at, skill_ids: [read['id'], made['id']] }),
  )
  t.match(given, [
    { skill_id: read['id'], skill: { name: 'Refunds' }, enabled: true, position: 0 },
    { skill_id: made['id'], position: 1 },
  ])
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.assign_skills',
        { ...at, skill_ids: ['skill_none'] },
        400,
        'bad_request',
      ),
    ),
    ['skill_ids[0]'],
  )
  await s.ok('skill.delete', { id: read['id'] })
  t.strictSame(await skilled(), [made['id']])
  t.strictSame(
    listOf(await s.ok('skill.list', { include_system: true })).map(({ name }) => name),
    ['Wins', 'Empty', 'Plain', 'Triage'],
  )
  await s.refused('skill.get', { id: read['id'] }, 404, 'not_found')
  await s.refused(
    'skill.replace',
    { id: read['id'], name: 'x', instructions: 'x' },
    404,
    'not_found',
  )
  t.notMatch(
    JSON.stringify(listOf(await s.ok('audit.list', { resource_id: made['id'] }))),
    'Sort by date',
    'instructions are not in the audit log',
  )
  await s.ok('agent.assign_skills', { ...at, skill_ids: [] })
})

t.test(
  'an organization skill is available in all projects and cannot be deleted while an agent has it',
  async (t) => {
    const shared = await s.ok('skill.create_organization', {
      name: 'House style',
      instructions: 'Be brief.',
    })
    const imported = await s.ok('skill.import_organization', {
      content: '---\nname: Manners\n---\nSay please.',
    })
    t.match(
      [shared, imported],
      [{ source: 'organization' }, { source: 'organization', name: 'Manners' }],
    )
    const other = await s.ok('project.create', { name: 'Second', handle: 'second' })
    const second = await s.ok('agent.create', { project: 'second', name: 'Helper' })
    const editor = await s.ok('principal.create', {
      project: 'second',
      name: 'editor',
      role_ids: ['role_editor'],
    })
    const as = {
      key: String(
        (
          await s.ok('key.create', {
            project: 'second',
            name: 'editor',
            principal_id: editor['id'],
          })
        )['key'],
      ),
    }
    t.strictSame(
      listOf(await s.ok('skill.list', { project: 'second' }, as)).map(({ name }) => name),
      ['Manners', 'House style'],
    )
    t.strictSame(
      listOf(await s.ok('skill.list_organization', {}, as)).map(({ name }) => name),
      ['Manners', 'House style'],
    )
    t.match(await s.ok('skill.get', { project: 'second', id: shared['id'] }, as), {
      source: 'organization',
    })
    t.strictSame(await s.ok('skill.get_organization', { id: shared['id'] }, as), shared)
    await s.refused(
      'skill.replace_organization',
      { id: shared['id'], name: 'x', instructions: 'x' },
      403,
      'permission_denied',
      as,
    )
    for (const row of ['skill.replace', 'skill.delete'] as const)
      await s.refused(
        row,
        {
          project: 'second',
          id: shared['id'],
          ...(row === 'skill.replace' && { name: 'x', instructions: 'x' }),
        },
        403,
        'forbidden',
        as,
      )
    const give = (...skill_ids: unknown[]) =>
      s.ok('agent.assign_skills', { project: 'second', id: second['id'], skill_ids }, as)
    t.match(listOf(await give(shared['id'])), [
      { skill: { name: 'House style', source: 'organization' } },
    ])
    await s.ok('agent.assign_skills', { ...at, skill_ids: [shared['id']] })
    t.strictSame(await s.ok('skill.usage', { id: shared['id'] }), {
      skill_id: shared['id'],
      assignment_count: 2,
      project_count: 2,
      projects: [
        { project_id: (await s.ok('project.get'))['id'], agent_count: 1 },
        { project_id: other['id'], agent_count: 1 },
      ].sort((a, b) => (String(a.project_id) < String(b.project_id) ? -1 : 1)),
    })
    await s.refused('skill.delete_organization', { id: shared['id'] }, 409, 'skill_in_use')
    await s.ok('skill.replace_organization', {
      id: shared['id'],
      name: 'Style',
      instructions: 'Be very brief.',
    })
    t.match(
      listOf(await s.ok('agent.skills', at)),
      [{ skill: { name: 'Style', instructions: 'Be very brief.' } }],
      'a change reaches every project',
    )
    await give()
    await s.refused('skill.delete_organization', { id: shared['id'] }, 409, 'skill_in_use')
    await s.ok('agent.delete', at)
    t.match(await s.ok('skill.usage', { id: shared['id'] }), { assignment_count: 0, projects: [] })
    t.equal((await s.call('skill.delete_organization', { id: shared['id'] })).status, 204)
    t.match(
      fieldsOf(
        await s.refused(
          'agent.assign_skills',
          { project: 'second', id: second['id'], skill_ids: [shared['id']] },
          400,
          'bad_request',
        ),
      ),
      ['skill_ids[0]'],
    )
    for (const row of [
      'skill.usage',
      'skill.get_organization',
      'skill.delete_organization',
    ] as const)
      await s.refused(row, { id: shared['id'] }, 404, 'not_found')
    t.match(
      listOf(await s.ok('audit.list', { resource_id: shared['id'] })).map(({ action }) => action),
      ['delete', 'update', 'create'],
    )
  },
)

t.test('of a concurrent assignment and deletion of a skill, one is rejected', async (t) => {
  const helper = await s.ok('agent.create', { name: 'Racer' })
  const outcomes = { assigned: 0, deleted: 0 }
  for (let round = 0; round < 12; round++) {
    const skill = await s.ok('skill.create_organization', {
      name: `race ${round}`,
      instructions: 'x',
    })
    const [assign, remove] = await Promise.all([
      s.call('agent.assign_skills', { id: helper['id'], skill_ids: [skill['id']] }),
      s.call('skill.delete_organization', { id: skill['id'] }),
    ])
    const has = listOf(await s.ok('agent.skills', { id: helper['id'] })).length === 1
    t.notOk(assign.status === 200 && remove.status === 204, 'at most one succeeds')
    t.equal(has, assign.status === 200)
    if (assign.status === 200) outcomes.assigned++
    if (remove.status === 204) outcomes.deleted++
    else t.match(remove.body, { error: { code: 'skill_in_use' } })
    await s.ok('agent.assign_skills', { id: helper['id'], skill_ids: [] })
  }
  t.ok(outcomes.assigned + outcomes.deleted > 0)
})

t.test("the tool manifest lists an agent's current tools and reports missing ones", async (t) => {
  const helper = await s.ok('agent.create', { name: 'Toolsmith' })
  for (const [name, more] of [
    ['crm.find', { endpoint_url: 'https://example.org/find', annotations: { read_only: true } }],
    ['crm.sync', { endpoint_url: 'https://example.org/sync' }],
    ['pay.out', { endpoint_kind: 'worker' }],
  ] as const)
    await s.ok('action.create', { name, ...more })
  const exact = (selector: string) => ({ selector_type: 'exact', selector })
  const [crm, pay] = [
    await s.ok('toolkit.create', {
      name: 'CRM',
      actions: [{ selector_type: 'group', selector: 'crm' }],
    }),
    await s.ok('toolkit.create', { name: 'Pay', actions: [exact('pay.out'), exact('pay.back')] }),
  ]
  const reader = await s.ok('skill.create', {
    name: 'Read only',
    instructions: 'Only look.',
    allowed_tools: ['crm.find', 'mail.*', 'fax.send'],
  })
  const manifest = (more: object = {}) => s.ok('agent.tools', { id: helper['id'], ...more })
  const names = (answer: object) => listOf(answer, 'tools').map(({ name }) => String(name))
  const before = await manifest()
  t.match(before, { agent_id: helper['id'], tools: [], skills: [], warnings: [], toolkit_ids: [] })
  await s.ok('agent.assign_toolkits', { id: helper['id'], toolkit_ids: [crm['id'], pay['id']] })
  await s.ok('agent.assign_skills', { id: helper['id'], skill_ids: [reader['id']] })
  const all = await manifest()
  t.strictSame(names(all), ['crm.find', 'crm.sync', 'pay.out'])
  t.match(all, {
    toolkit_ids: [crm['id'], pay['id']],
    groups_resolved: [{ name: 'crm', members: ['crm.find', 'crm.sync'] }],
    tools: [{ name: 'crm.find', source: 'custom', definition_scope: 'project', risk: 'low' }],
    skills: [
      {
        id: reader['id'],
        name: 'Read only',
        active: false,
        missing_required: ['fax.send'],
        missing_recommended: ['mail.*'],
      },
    ],
  })
  t.strictSame(
    listOf(all, 'warnings').map(({ code, tool, action }) => [code, tool ?? action]),
    [
      ['selector_unmatched', 'pay.back'],
      ['skill_tool_missing', 'mail.*'],
      ['skill_tool_missing', 'fax.send'],
      ['action_not_ready', 'pay.out'],
    ],
  )
  t.not(all['policy_hash'], before['policy_hash'])
  t.equal((await manifest())['policy_hash'], all['policy_hash'])
  t.strictSame(names(await manifest({ toolkit_ids: [pay['id']] })), ['pay.out'])
  const loaded = await manifest({ skill_name: 'Read only' })
  t.strictSame(names(loaded), ['crm.find'])
  t.match(loaded, { skills: [{ active: true }] })
  t.strictSame(names(await manifest({ allowed_tools: ['crm', 'pay.none'] })), [
    'crm.find',
    'crm.sync',
  ])
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.tools',
        { id: helper['id'], toolkit_ids: ['kit_none'], skill_name: 'None' },
        400,
        'bad_request',
      ),
    ),
    ['toolkit_ids[0]', 'skill_name'],
  )
  await s.refused('agent.tools', { id: 'agt_none' }, 404, 'not_found')
  const worker = await s.worker({ action_names: ['pay.out'] })
  t.notOk(
    listOf(await manifest(), 'warnings').some(({ code }) => String(code) === 'action_not_ready'),
    'an action with a connected worker is ready',
  )
  t.equal(
    (await manifest())['policy_hash'],
    all['policy_hash'],
    'readiness does not change the policy hash',
  )
  worker.close()
})
