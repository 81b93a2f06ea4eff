/**
 * Creates the project of a small mail-order bookshop, for the pictures of the console in the
 * documentation. Every page has a few realistic records.
 */
import { ownerOf } from '../../../hostile/support/owner.ts'
import type { Service } from '../../../support/service.ts'
import { artifactClient } from '../../artifacts/client.ts'
import { until } from '../../support/given.ts'
import { person } from '../../support/people.ts'
import { books, DESK, fulfilment, work } from './shop-work.ts'

const project = 'lantern-books'
/** The project, and the ids of records by the URL segment of the page that shows them. */
export interface Shop {
  readonly project: string
  readonly records: Readonly<Record<string, string>>
  stop(): void
}
type Open = Record<string, unknown>

/** Creates the project with its records. */
export async function openShop(s: Service): Promise<Shop> {
  await s.ok('project.create', {
    name: 'Lantern Books',
    handle: project,
    description: 'Orders, stock and customer questions of the bookshop',
  })
  const ok = (name: Parameters<Service['ok']>[0], input: Open = {}) =>
    s.ok(name, { project, ...input })
  const ada = await person(s, 'Ada Keller', 'role_admin', project)
  const ben = await person(s, 'Ben Okafor', 'role_editor', project)
  const mia = await person(s, 'Mia Tanaka', 'role_operator', project)
  await person(s, 'Tom Lindqvist', 'role_viewer', project)
  const lead = await ok('role.create', {
    name: 'Shift lead',
    description: 'Answers questions about large orders',
    permissions: ['service.project.view', 'service.runs.operate'],
  })
  await ok('assignment.create', { principal_id: ada.id, role_id: lead['id'] })
  for (const [name, email] of [
    ['Nora Weiss', 'nora@lantern.example'],
    ['Paul Grant', 'paul@lantern.example'],
  ] as const)
    await ok('user.create', { name, email, role_ids: ['role_editor'] })

  const worker = await s.worker(
    {
      worker_instance_id: 'warehouse-1',
      name: 'Warehouse',
      version: '2.4.0',
      concurrency_limit: 8,
      frames: ['job.log'],
      action_names: [
        'stock.reserve',
        'payments.charge',
        'parcel.pack',
        'parcel.label',
        'mail.send',
        'orders.find',
      ],
    },
    { project },
  )
  const working = work(worker).catch(() => {})

  const workflow = await ok('workflow.create', {
    name: 'Order fulfilment',
    description: 'From the paid order to the parcel that leaves the warehouse',
    tags: { team: 'warehouse' },
    spec: fulfilment,
  })
  await ok('workflow.create', {
    name: 'Refund',
    description: 'Pays an order back and returns the books to their shelf',
    spec: {
      steps: [
        { id: 'pay', name: 'Pay back', kind: 'action', config: { action_name: 'payments.charge' } },
      ],
    },
  })
  await ok('workflow.update', {
    id: workflow['id'],
    spec: { ...fulfilment, limits: { wall_clock_timeout: '72h' } },
  })
  const runs: string[] = []
  for (const [order, total] of [
    ['L-2036', 38.4],
    ['L-2037', 27.9],
    ['L-2038', 61.0],
    ['L-2039', 19.8],
    ['L-2040', 45.5],
    ['L-2041', 24.9],
    ['L-2042', 730.0],
  ] as const) {
    const run = await ok('workflow.run', {
      id: workflow['id'],
      input: { order, total },
      external_id: order,
    })
    runs.push(String(run['id']))
  }
  const statusOf = async (id: string | undefined) => String((await ok('run.get', { id }))['status'])
  const reached = (id: string | undefined, ...wanted: readonly string[]) =>
    until(
      () => statusOf(id),
      (status) => wanted.includes(status),
    )
  for (const id of runs) await reached(id, 'completed', 'failed', 'suspended')

  const loop = await ok('loop.create', {
    name: 'Restock',
    description: 'Orders books from the publisher before they run out',
    triggers: [
      { kind: 'schedule', key: 'night', config: { cron: '30 2 * * *', timezone: 'Europe/Berlin' } },
      { kind: 'event', key: 'low', config: { event_type: 'stock.low' } },
      { kind: 'manual', key: 'by-hand', config: {} },
    ],
    run_name: { template: 'Restock' },
    steps: [
      {
        id: 'order',
        name: 'Order from the publisher',
        kind: 'action',
        config: { action_name: 'mail.send' },
      },
    ],
  })
  await ok('loop.create', {
    name: 'Weekly report',
    description: 'Sums up the sales of the week',
    triggers: [
      { kind: 'schedule', key: 'monday', config: { cron: '0 7 * * 1', timezone: 'Europe/Berlin' } },
    ],
    steps: [{ id: 'report', kind: 'sleep', config: { duration: '0' } }],
  })
  const event = await ok('event.publish', {
    event_type: 'stock.low',
    event: { isbn: '978-0-57', title: 'Never Let Me Go', left: 0 },
  })
  for (const order of ['L-2043', 'L-2044'])
    await ok('event.publish', { event_type: 'order.paid', event: { order, total: 31.5 } })

  await ok('action.create', {
    name: 'orders.find',
    title: 'Find an order',
    description: 'Returns an order with its parcel',
    endpoint_kind: 'worker',
    input_schema: {
      type: 'object',
      properties: { number: { type: 'string', title: 'Number of the order' } },
    },
    annotations: { read_only: true },
  })
  await ok('action.create', {
    name: 'payments.refund',
    title: 'Refund an order',
    description: 'Pays an order back to the card of the customer',
    endpoint_url: 'https://payments.lantern.example/refunds',
    annotations: { destructive: true },
  })
  const toolkit = await ok('toolkit.create', {
    name: 'Orders',
    description: 'Looking up orders and parcels',
    actions: [{ selector_type: 'group', selector: 'orders' }],
  })
  const skill = await ok('skill.create', {
    name: 'Tone',
    description: 'How answers to customers sound',
    instructions:
      'Be brief and friendly. Name the order. Never promise a date that is not certain.',
  })
  const agent = await ok('agent.create', {
    name: 'Order desk',
    description: 'Answers questions of customers about their orders',
    system_prompt: DESK,
  })
  await ok('agent.create', {
    name: 'Buyer',
    description: 'Suggests what to order from publishers',
    system_prompt: 'You suggest which books to order.',
  })
  const { id: agent_id } = agent
  await ok('agent.assign_toolkits', { id: agent_id, toolkit_ids: [toolkit['id']] })
  await ok('agent.assign_skills', { id: agent_id, skill_ids: [skill['id']] })
  await ok('memory.save', {
    id: agent_id,
    memory_key: 'carrier',
    content: 'Parcels to islands take two more days.',
  })
  const session = await ada.ok('session.create', {
    agent_id,
    mode: 'new',
    title: 'Where is order L-2041?',
  })
  for (const text of ['Where is order L-2041?', 'Yes, write it, please.']) {
    const turn = await ada.ok('session.start_turn', {
      session_id: session['id'],
      content: [{ type: 'text', text }],
    })
    await until(
      () =>
        ok('session.turn', {
          session_id: session['id'],
          turn_id: turn['id'] ?? (turn['turn'] as unknown as Open)?.['id'],
        }),
      ({ status }) => status === 'completed',
    )
  }
  await ada.ok('session.create', { agent_id, mode: 'new', title: 'Refund for L-2029' })

  const channel = await ok('channel.create', {
    name: 'warehouse',
    display_name: 'Warehouse',
    topic: 'What leaves today, and what is missing',
    member_ids: [ada.id, ben.id, mia.id],
  })
  await ok('channel.create', {
    name: 'customers',
    topic: 'Questions that need a person',
    member_ids: [ada.id, ben.id],
  })
  const { id: channel_id } = channel
  const said = await ben.ok('channel.send', {
    id: channel_id,
    content: 'Order **L-2042** is ready for a check. It is 730 €, and the address is new.',
  })
  await ada.ok('channel.send', {
    id: channel_id,
    content: 'I will look at it now.',
    reply_to: said['id'],
  })
  await ben.ok('channel.send', {
    id: channel_id,
    content: 'Missing today:\n\n- *Never Let Me Go*, 3 copies\n- padded envelopes, size C',
  })
  await ada.ok('channel.send', {
    id: channel_id,
    content: 'The envelopes arrive at 11. I have ordered the books.',
  })
  await ok('channel.edit', { id: channel_id, message_id: said['id'], pinned: true })

  const table = await ok('table.create', {
    name: 'books',
    description: 'The books in stock',
    schema: {
      identity_column: 'isbn',
      columns: [
        { name: 'isbn', type: 'string', required: true },
        { name: 'title', type: 'string', description: 'Title on the cover' },
        { name: 'author', type: 'string' },
        { name: 'price', type: 'number' },
        { name: 'stock', type: 'number' },
        { name: 'counted', type: 'date' },
      ],
    },
  })
  await ok('row.bulk', {
    id: table['id'],
    rows: books.map(([isbn, title, author, price, stock, counted]) => ({
      isbn,
      title,
      author,
      price,
      stock,
      counted,
    })),
  })
  await ok('table.create', {
    name: 'customers',
    description: 'Customers with an account',
    schema: {
      identity_column: 'email',
      columns: [{ name: 'email', type: 'string', required: true }],
    },
  })
  const artifacts = artifactClient(s.url, s.key)
  const csv = [
    'week,orders,revenue',
    ...[40, 41, 42, 43, 44, 45, 46].map(
      (week, n) => `${week},${120 + n * 7},${(2890 + n * 143.5).toFixed(2)}`,
    ),
  ]
  const { body: artifact } = await artifacts.put(
    'reports/sales-2026.csv',
    Buffer.from(`${csv.join('\n')}\n`),
    { project },
  )
  await artifacts.put('labels/L-2041.txt', Buffer.from('Post 00340434161094\n'), { project })
  await artifacts.put(
    'notes/packing.md',
    Buffer.from('# Packing\n\nHeavy books go to the bottom.\n'),
    { project },
  )
  const environment = await ok('environment.create', {
    name: 'catalogue-site',
    tags: { team: 'web' },
  })
  await ok('environment.create', { name: 'import-scripts', tags: { team: 'warehouse' } })
  const webhook = await ok('webhook.create', {
    name: 'Alarms of the warehouse',
    url: 'https://hooks.lantern.example/alarms',
    events: ['run.failed', 'loop.auto_paused'],
    enabled: false,
  })
  await ok('webhook.create', {
    name: 'Accounting',
    url: 'https://books.lantern.example/baton',
    events: ['run.completed'],
    enabled: false,
  })
  await ok('secret.put', { secret_name: 'payments', entries: { token: 'not-a-real-token' } })
  await ok('repository_host.put', {
    host_name: 'git',
    kind: 'token',
    url: 'https://git.lantern.example',
    read_token: 'not-a-real-token',
  })
  await ok('blueprint.apply', {
    namespace: 'lantern',
    blueprint_key: 'customer-desk',
    resources: {
      skills: [
        {
          key: 'refunds',
          name: 'Refunds',
          instructions: 'A refund needs the number of the order.',
        },
      ],
    },
  })
  let question = ''
  // The pictures are taken with the owner key. The questions are also addressed to its principal,
  // so that they appear in the inbox.
  const target_user_ids = [await ownerOf(s), ada.id]
  for (const [title, description, more] of [
    [
      'Which publisher gets the order for Never Let Me Go?',
      'Both can deliver within a week. The price differs by 4 %.',
      {
        kind: 'request_information',
        spec: {
          mode: 'select',
          options: [
            { value: 'faber', label: 'Faber', description: '6.80 €, in 5 days' },
            { value: 'wholesale', label: 'Wholesale', description: '7.10 €, in 2 days' },
          ],
        },
      },
    ],
    ['Refund order L-2029?', 'The parcel came back unopened.', { kind: 'request_approval' }],
  ] as const) {
    const { id } = await ok('interaction.create', { title, description, target_user_ids, ...more })
    question ||= String(id)
  }
  return {
    project,
    records: {
      runs: runs[5] ?? '',
      otherRun: runs[2] ?? '',
      inbox: question,
      workflows: String(workflow['id']),
      loops: String(loop['id']),
      actions: 'orders.find',
      events: String(event['source_event_id']),
      channels: String(channel_id),
      sessions: String(session['id']),
      agents: String(agent_id),
      toolkits: String(toolkit['id']),
      skills: String(skill['id']),
      tables: String(table['id']),
      artifacts: String(artifact['id']),
      environments: String(environment['id']),
      webhooks: String(webhook['id']),
    },
    stop: () => {
      worker.close()
      void working
    },
  }
}
