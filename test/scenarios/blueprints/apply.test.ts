/**
 * The preview and the apply of a blueprint with resources of several types, and a repeated apply.
 */
import t from 'tap'
import { service } from '../../support/service.ts'

const s = await service()
t.teardown(() => s.stop())

type Change = { resource_type: string; key: string; action: string; resource_id?: string }
const apply = (resources: object, more: object = {}, include?: string[]) =>
  s.ok('blueprint.apply', {
    namespace: 'ops',
    blueprint_key: 'desk',
    resources,
    ...more,
    ...(include !== undefined && { include }),
  })
const actionsOf = (result: Record<string, unknown>) =>
  (result['changes'] as Change[]).map(({ resource_type, key, action }) => [
    `${resource_type}/${key}`,
    action,
  ])

const schema = {
  columns: [
    { name: 'number', type: 'string', required: true },
    { name: 'title', type: 'string' },
  ],
  identity_column: 'number',
}
const resources = {
  tables: [{ key: 'tickets', name: 'desk_tickets', schema }],
  actions: [
    {
      key: 'find',
      name: 'crm.find',
      endpoint: 'https://crm.example/find?token=geheim',
      title: 'Find',
      annotations: { read_only: true, long_running: true },
    },
    { key: 'work', name: 'crm.work', type: 'worker' },
  ],
  skills: [{ key: 'tone', name: 'Tone', title: 'The tone', instructions: 'Be kind.' }],
  toolkits: [
    {
      key: 'crm',
      name: 'CRM',
      actions: [{ selector: 'crm.find' }, { action_name: 'crm.work' }],
      metadata: { owner: 'desk' },
    },
  ],
  agents: [
    {
      key: 'helper',
      name: 'helper',
      system_prompt: 'Help.',
      timeout_seconds: 0,
      toolkits: [{ key: 'crm' }],
      skills: [{ key: 'tone' }],
    },
  ],
  loops: [
    {
      key: 'sort',
      name: 'Sort tickets',
      agent: { key: 'helper' },
      triggers: [
        { key: 'form', kind: 'http' },
        { key: 'hand', kind: 'manual' },
      ],
      steps: [{ id: 'work', kind: 'action', config: { action_name: 'crm.work' } }],
    },
  ],
}

t.test(
  'a preview writes nothing, an apply creates, and a second apply changes nothing',
  async (t) => {
    const preview = await apply(resources, { mode: 'preview' })
    t.equal(preview['status'], 'previewed')
    const expected = [
      ['table/tickets', 'created'],
      ['action/find', 'created'],
      ['action/work', 'created'],
      ['skill/tone', 'created'],
      ['toolkit/crm', 'created'],
      ['agent/helper', 'created'],
      ['loop/sort', 'created'],
    ]
    t.strictSame(actionsOf(preview), expected)
    t.strictSame(preview['bindings'], [])
    const applied = await apply(resources)
    t.equal(applied['status'], 'applied')
    t.strictSame(actionsOf(applied), expected)
    t.equal((applied['bindings'] as never as unknown[]).length, 7)
    t.strictSame(Object.keys(applied).sort(), [
      'bindings',
      'blueprint_key',
      'changes',
      'namespace',
      'status',
    ])
    const again = await apply(resources, {}, ['plan', 'drift'])
    t.strictSame(
      actionsOf(again),
      expected.map(([place]) => [place, 'unchanged']),
      JSON.stringify(again['changes']),
    )
    t.strictSame(again['bindings'], applied['bindings'])
  },
)

t.test('an empty display name of a channel removes it', async (t) => {
  const channels = (display_name: string) => ({
    channels: [{ key: 'desk', name: 'desk', display_name }],
  })
  const created = await apply(channels('The desk'), { blueprint_key: 'rooms' })
  const [change] = created['changes'] as never as Change[]
  const channel = { id: change?.resource_id }
  t.match(await s.ok('channel.get', channel), { display_name: 'The desk' })
  const removed = await apply(channels(''), { blueprint_key: 'rooms' })
  t.strictSame(actionsOf(removed), [['channel/desk', 'updated']])
  t.match(await s.ok('channel.get', channel), { display_name: 'desk' })
  const again = await apply(channels(''), { blueprint_key: 'rooms' }, ['drift'])
  t.strictSame(actionsOf(again), [['channel/desk', 'unchanged']])
})
