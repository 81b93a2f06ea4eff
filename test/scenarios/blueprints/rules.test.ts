/**
 * The contract of applies: defaults, the exact members of answers, references, and refusals with
 * codes and paths.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, fieldsOf, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const apply = (resources: Open, more: Open = {}) => s.ok('blueprint.apply', { resources, ...more })
const refused = (resources: Open, status: number, code: string, more: Open = {}) =>
  s.refused('blueprint.apply', { resources, ...more }, status, code)
const actionsOf = (result: object) =>
  listOf(result, 'changes').map(({ resource_type, key, action }) => [resource_type, key, action])
const schema = {
  columns: [
    { name: 'number', type: 'string', required: true },
    { name: 'title', type: 'string' },
  ],
  identity_column: 'number',
}

t.test('the mode is apply by default, and an empty text is an absent member', async (t) => {
  const resources = { skills: [{ key: 'a', name: 'A' }] }
  const bare = await apply(resources)
  t.strictSame(Object.keys(bare).sort(), ['bindings', 'changes', 'status'])
  t.equal(bare['status'], 'applied')
  const again = await apply(resources, {
    namespace: '',
    blueprint_key: '',
    blueprint_version: '',
    mode: 'apply',
  })
  t.strictSame(Object.keys(again).sort(), ['bindings', 'changes', 'status'])
  t.strictSame(actionsOf(again), [['skill', 'a', 'unchanged']], 'it is the same blueprint')
  t.strictSame(again['bindings'], bare['bindings'])
  t.strictSame(Object.keys(listOf(bare, 'bindings')[0] ?? {}).sort(), [
    'delete_on_destroy',
    'key',
    'protected',
    'resource_id',
    'resource_type',
  ])
  const empty = await apply({}, { blueprint_key: 'none' })
  t.strictSame(empty, { status: 'applied', blueprint_key: 'none', changes: [], bindings: [] })
  const preview = await apply(resources, { mode: 'preview', blueprint_key: 'other' })
  t.equal(preview['status'], 'previewed')
})

t.test('the answers have exactly the listed members, in the order of the tiers', async (t) => {
  const identity = { namespace: 'exact', blueprint_key: 'all', blueprint_version: '3' }
  const resources = {
    loops: [{ key: 'l', name: 'Exact loop', agent: { key: 'g' } }],
    agents: [{ key: 'g', name: 'exact-agent', toolkits: [{ key: 'k' }], skills: [{ key: 's' }] }],
    toolkits: [{ key: 'k', name: 'Exact kit' }],
    skills: [
      { key: 's', name: 'Exact skill' },
      { key: 'r', name: 'Exact other' },
    ],
    actions: [{ key: 'x', name: 'exact.do', type: 'worker' }],
    tables: [{ key: 't', name: 'exact_table', schema }],
  }
  const places = [
    ['table', 't'],
    ['action', 'x'],
    ['skill', 's'],
    ['skill', 'r'],
    ['toolkit', 'k'],
    ['agent', 'g'],
    ['loop', 'l'],
  ]
  const preview = await apply(resources, { ...identity, mode: 'preview' })
  t.strictSame(
    listOf(preview, 'changes').map(({ resource_type, key }) => [resource_type, key]),
    places,
  )
  t.strictSame(
    new Set(listOf(preview, 'changes').flatMap((change) => Object.keys(change))),
    new Set(['resource_type', 'key', 'action']),
    'a preview has no ids of resources that do not exist',
  )
  t.strictSame(preview['bindings'], [])
  const applied = await apply(resources, identity)
  t.strictSame(Object.keys(applied).sort(), [
    'bindings',
    'blueprint_key',
    'blueprint_version',
    'changes',
    'namespace',
    'status',
  ])
  const changes = listOf(applied, 'changes')
  t.strictSame(
    changes.map(({ resource_type, key }) => [resource_type, key]),
    places,
  )
  const bindings = listOf(applied, 'bindings')
  t.strictSame(
    new Set(bindings.map(({ resource_type, key }) => `${resource_type}/${key}`)),
    new Set(places.map((place) => place.join('/'))),
  )
  for (const binding of bindings) {
    t.strictSame(binding, {
      resource_type: binding['resource_type'],
      key: binding['key'],
      resource_id: changes.find(
        ({ resource_type, key }) =>
          resource_type === binding['resource_type'] && key === binding['key'],
      )?.['resource_id'],
      ...identity,
      protected: false,
      delete_on_destroy: true,
    })
  }
  const listed = await s.ok('blueprint.bindings', { namespace: 'exact' })
  t.strictSame(listed, { items: bindings }, 'the list is not paginated')
  const newer = await apply(resources, { ...identity, blueprint_version: '4' })
  t.ok(actionsOf(newer).every(([, , action]) => action === 'unchanged'))
  t.ok(
    listOf(newer, 'bindings').every(({ blueprint_version }) => blueprint_version === '4'),
    'the bindings have the new version',
  )
})

t.test('omitted attributes stay, and explicit empty values reset', async (t) => {
  const identity = { blueprint_key: 'reset' }
  const full = {
    key: 'a',
    name: 'reset-agent',
    description: 'one',
    system_prompt: 'Help.',
    timeout_seconds: 60,
    thinking_effort: 'high',
    color: 'blue',
    tags: { team: 'a' },
    toolkits: [{ key: 'k' }],
    skills: [{ key: 's' }],
  }
  const kit = {
    key: 'k',
    name: 'Reset kit',
    description: 'kit',
    actions: [{ selector: 'reset.do' }],
    tags: { team: 'a' },
    metadata: { owner: 'a' },
  }
  const skill = {
    key: 's',
    name: 'Reset skill',
    title: 'Title',
    description: 'd',
    instructions: 'Do.',
    allowed_tools: ['x'],
  }
  const parts = { toolkits: [kit], skills: [skill] }
  const first = await apply({ ...parts, agents: [full] }, identity)
  const [, , id] = listOf(first, 'changes').map(({ resource_id }) => String(resource_id))
  const before = await s.ok('agent.get', { id })
  const names = await apply(
    {
      toolkits: [{ key: 'k', name: 'Reset kit' }],
      skills: [{ key: 's', name: 'Reset skill' }],
      agents: [{ key: 'a', name: 'reset-agent' }],
    },
    identity,
  )
  t.ok(actionsOf(names).every(([, , action]) => action === 'unchanged'))
  t.strictSame(await s.ok('agent.get', { id }), before)
  const one = await apply({ toolkits: [{ ...kit, description: 'new' }] }, identity)
  t.strictSame(actionsOf(one), [['toolkit', 'k', 'updated']])
  const kept = (await s.ok('toolkit.list')) as Found
  const stored = listOf(kept).find(({ name }) => name === 'Reset kit')
  t.match(stored, { description: 'new', tags: { team: 'a' } })
  t.equal(listOf(stored ?? {}, 'actions').length, 1, 'a row that replaces keeps the other fields')
  const cleared = await apply(
    {
      toolkits: [{ key: 'k', name: 'Reset kit', actions: [], tags: {}, description: '' }],
      agents: [
        {
          key: 'a',
          name: 'reset-agent',
          description: '',
          system_prompt: '',
          timeout_seconds: 0,
          thinking_effort: 'inherit',
          color: '',
          tags: {},
          toolkits: [],
          skills: [],
        },
      ],
    },
    identity,
  )
  t.strictSame(actionsOf(cleared), [
    ['toolkit', 'k', 'updated'],
    ['agent', 'a', 'updated'],
  ])
  const after = await s.ok('agent.get', { id })
  for (const field of ['description', 'system_prompt', 'color'])
    t.notOk(after[field], `${field} is empty`)
  t.strictSame(after['tags'] ?? {}, {})
  const again = await apply(
    {
      toolkits: [{ key: 'k', name: 'Reset kit', actions: [], tags: {}, description: '' }],
      agents: [{ key: 'a', name: 'reset-agent', description: '', toolkits: [], color: '' }],
    },
    identity,
  )
  t.ok(actionsOf(again).every(([, , action]) => action === 'unchanged'))
})

t.test('invalid requests are refused with 400 and the paths of the fields', async (t) => {
  const bad = async (resources: Open, field: string | RegExp, more: Open = {}) => {
    for (const mode of more['mode'] === undefined ? ['preview', 'apply'] : [more['mode']]) {
      const error = await refused(resources, 400, 'bad_request', { ...more, mode })
      t.match(fieldsOf(error).join(' '), field, `${mode}: ${JSON.stringify(error.details)}`)
      t.equal(error.message.split(': ')[0], fieldsOf(error)[0], 'the message names the field too')
    }
  }
  await bad({ agents: [{ key: 'a', name: 'a', typo: 1 }] }, /resources\.agents\[0\].*typo/)
  await bad({ tables: [{ key: 'a', name: 'a_b' }] }, /resources\.tables\[0\].*schema/)
  await bad({ agents: [{ name: 'a' }] }, /resources\.agents\[0\].*key/)
  await bad({ agents: [{ key: 'a' }] }, /resources\.agents\[0\].*name/)
  await bad({ agents: [{ key: '', name: 'a' }] }, /resources\.agents\[0\]\.key/)
  await bad({}, /namespace/, { namespace: 'x'.repeat(129) })
  await bad({}, /namespace/, { namespace: 'a\nb' })
  await bad({}, /blueprint_key/, { blueprint_key: 'a\u0000' })
  await bad({}, /mode/, { mode: 'dry' })
  await bad({}, /extra/, { extra: true })
  await bad(
    {
      skills: [
        { key: 'a', name: 'A1' },
        { key: 'a', name: 'A2' },
      ],
    },
    'resources.skills[1].key',
  )
  await bad(
    { tables: [{ key: 'a', name: 'bad_table', schema: { columns: [] } }] },
    /resources\.tables\[0\]\.schema/,
  )
  await bad(
    { tables: [{ key: 'a', name: 'bad_table', schema: { ...schema, identity_column: 'none' } }] },
    /resources\.tables\[0\]\.schema/,
  )
  await bad(
    { loops: [{ key: 'a', name: 'a', steps: [{ id: 'x', kind: 'nothing' }] }] },
    /resources\.loops\[0\]\.steps/,
  )
  await bad(
    {
      loops: [
        {
          key: 'a',
          name: 'a',
          steps: [{ id: 'x', kind: 'sleep', config: { duration: '0' }, if: '1 +' }],
        },
      ],
    },
    /resources\.loops\[0\]\.steps\[0\]/,
  )
  await bad(
    { loops: [{ key: 'a', name: 'a', schema_version: '2' }] },
    /resources\.loops\[0\]\.schema_version/,
  )
  await bad(
    { toolkits: [{ key: 'a', name: 'a', actions: [{ selector: 'x', action_name: 'x' }] }] },
    /resources\.toolkits\[0\]\.actions\[0\]/,
  )
  await bad(
    {
      agents: [
        { key: 'a', name: 'a', compaction_policy: { threshold: 'sm', threshold_tokens: 9 } },
      ],
    },
    /resources\.agents\[0\]\.compaction_policy/,
  )
  await bad(
    { skills: [{ key: 'a', name: 'a', tags: { 'service:x': 'y' } }] },
    /resources\.skills\[0\]\.tags/,
  )
  await bad(
    { roles: [{ key: 'a', name: 'no-role', permissions: ['service.project.none'] }] },
    /resources\.roles\[0\]\.permissions\[0\]/,
  )
  await bad(
    { actions: [{ key: 'a', name: 'no_endpoint', type: 'http' }] },
    /resources\.actions\[0\]\.endpoint/,
  )
  for (const reference of [{}, { id: 'tk_1', key: 'k' }, { key: 'k', blueprint_ref: { key: 'k' } }])
    await bad(
      { agents: [{ key: 'a', name: 'a', toolkits: [reference] }] },
      /resources\.agents\[0\]\.toolkits\[0\]/,
    )
  t.strictSame(
    listOf(await s.ok('blueprint.bindings', {})).filter(({ key }) => key === 'bad'),
    [],
  )
})

t.test('a preview is refused like its apply, and neither writes anything', async (t) => {
  const wrong = {
    tables: [{ key: 't', name: 'wrong_table', schema }],
    agents: [{ key: 'a', name: 'wrong-agent', toolkits: [{ key: 'missing' }] }],
  }
  for (const mode of ['preview', 'apply']) {
    const { details } = await refused(wrong, 404, 'not_found', { blueprint_key: 'wrong', mode })
    t.match(details, {
      resource_type: 'toolkit',
      key: 'missing',
      field: 'resources.agents[0].toolkits[0]',
    })
  }
  for (const reference of [
    { id: 'tk_missing' },
    { blueprint_ref: { key: 'missing' } },
    { blueprint_ref: { namespace: 'no', key: 'missing' } },
  ])
    await refused(
      { agents: [{ key: 'a', name: 'wrong-agent', toolkits: [reference] }] },
      404,
      'not_found',
    )
  await refused(
    { loops: [{ key: 'l', name: 'wrong loop', agent: { id: 'agt_missing' } }] },
    404,
    'not_found',
  )
  t.strictSame(await s.ok('blueprint.bindings', { blueprint_key: 'wrong' }), { items: [] })
  t.strictSame(
    listOf(await s.ok('table.list')).filter(({ name }) => name === 'wrong_table'),
    [],
  )
})

t.test(
  'references name resources by id, by key, and by the key of another blueprint',
  async (t) => {
    const kit = (key: string, name: string) => ({ toolkits: [{ key, name }] })
    await apply(kit('shared', 'Library kit'), { namespace: 'lib', blueprint_key: 'one' })
    await apply(kit('plain', 'Plain kit'), { blueprint_key: 'plain' })
    const outside = await s.ok('toolkit.create', { name: 'Outside kit' })
    const mine = { namespace: 'app', blueprint_key: 'app' }
    await apply(kit('earlier', 'Earlier kit'), mine)
    const toolkits = [
      { id: outside['id'] },
      { key: 'earlier' },
      { key: 'now' },
      { blueprint_ref: { namespace: 'lib', key: 'shared' } },
      { blueprint_ref: { namespace: '', key: 'plain' } },
    ]
    const applied = await apply(
      { ...kit('now', 'New kit'), agents: [{ key: 'a', name: 'refers', toolkits }] },
      mine,
    )
    const all = await s.ok('blueprint.bindings', {})
    const agent = listOf(applied, 'changes').find(({ key }) => key === 'a')?.['resource_id']
    const assigned = await s.ok('agent.toolkits', { id: agent })
    t.strictSame(
      listOf(assigned).map((one) => one['toolkit_id'] ?? one['id']),
      [
        outside['id'],
        ...['earlier', 'now', 'shared', 'plain'].map(
          (key) => listOf(all).find((binding) => binding['key'] === key)?.['resource_id'],
        ),
      ],
      'in the order of the request',
    )
    await apply(kit('shared', 'Second kit'), { namespace: 'lib', blueprint_key: 'two' })
    const { details } = await refused(
      { agents: [{ key: 'b', name: 'refers-2', toolkits: toolkits.slice(3, 4) }] },
      409,
      'blueprint_ambiguous_name',
      mine,
    )
    t.match(details, {
      resource_type: 'toolkit',
      key: 'shared',
      field: 'resources.agents[0].toolkits[0]',
    })
  },
)
