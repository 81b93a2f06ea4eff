/**
 * Additions: optional fields beyond the published records. Every operation that supports an
 * addition returns it only if `include` lists it.
 */
import t from 'tap'
import { client } from '../../../client/client.ts'
import { api } from '../../../protocol/api.ts'
import { service } from '../../support/service.ts'
import { type Found, listOf } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

const steps = [
  { id: 'work', kind: 'action', config: { action_name: 'nobody.does' } },
  { id: 'wait', kind: 'wait_for_event', config: { event_type: 'table.row.created' } },
]
const spec = { steps, run_name: { template: 'Named', description_template: 'Shown' } }
const loop = await s.ok('loop.create', { name: 'Adds', steps })
const workflow = await s.ok('workflow.create', { name: 'Adds', spec })
const run = await s.ok('workflow.run', { id: workflow['id'] })
const looped = await s.ok('loop.start', { id: loop['id'] })
const channel = await s.ok('channel.create', { name: 'adds' })
const environment = await s.ok('environment.create', { name: 'adds' })
const kit = await s.ok('toolkit.create', {
  name: 'adds',
  actions: [{ selector_type: 'exact', selector: 'environment.bash' }],
})
const agent = await s.ok('agent.create', { name: 'adds' })
await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [kit['id']] })
await s.ok('environment.create', { mode: 'agent', agent_id: agent['id'] })
const session = await s.ok('session.create', { agent_id: agent['id'] })
const { turn } = (await s.ok('session.start_turn', {
  session_id: session['id'],
  content: [{ type: 'text', text: 'hello' }],
})) as unknown as { turn: Found }
const webhook = await s.ok('webhook.create', { name: 'adds', url: 'https://receiver.invalid/' })
await s.ok('webhook.ping', { webhook_id: webhook['id'] })
const worker = await s.worker({ action_names: ['nobody.else'] })
t.teardown(() => worker.close())
/** The operations that support additions, each with an input for which it returns records. */
const reads = {
  'run.get': { id: run['id'] },
  'run.list': {},
  'run.jobs': { id: run['id'] },
  'run.steps': { id: run['id'] },
  'run.project_steps': { id: run['id'] },
  'workflow.get': { id: workflow['id'] },
  'workflow.runs': { id: workflow['id'] },
  'loop.get': { id: loop['id'] },
  'loop.list': {},
  'project.get': {},
  'project.list': {},
  'channel.get': { id: channel['id'] },
  'channel.list': {},
  'environment.get': { environment_id: environment['id'] },
  'environment.list': {},
  'session.get': { session_id: session['id'] },
  'session.turns': { session_id: session['id'] },
  'session.turn': { session_id: session['id'], turn_id: turn?.['id'] },
  'webhook.get': { webhook_id: webhook['id'] },
  'webhook.list': {},
  'webhook.deliveries': { webhook_id: webhook['id'] },
  'worker.list': {},
} as const
type Read = keyof typeof reads

const records = (body: Record<string, never>): Readonly<Record<string, unknown>>[] =>
  'items' in body ? listOf(body) : [body]

t.test('no operation returns an additional member that was not requested', async (t) => {
  await s.ok('project.update', {
    separate_approver: false,
    email_notifications: false,
    attachments: true,
  })
  const rows = Object.entries(api).filter(
    ([, { verb, shape }]) => verb === 'query' && 'additions' in shape,
  )
  t.strictSame(rows.map(([name]) => name).sort(), Object.keys(reads).sort())
  for (const [name, input] of Object.entries(reads)) {
    const { additions } = api[name as Read].shape
    const names = Object.keys(additions)
    // `s.ok` throws if the response has an additional field that was not requested.
    await s.ok(name as Read, input)
    const asked = records(await s.ok(name as Read, { ...input, include: names }))
    for (const member of names)
      if (!ABSENT.has(`${name} ${member}`))
        t.ok(
          asked.some((record) => member in record),
          `${name} answers ${member}`,
        )
    t.match(await s.refused(name as Read, { ...input, include: ['no_such'] }, 400, 'bad_request'), {
      details: { fields: [{ field: 'include[0]' }] },
    })
  }
})
/**
 * Fields that no record in this test has. No job has a fairness key, the calling key is not a
 * member of any channel, no delivery was attempted or sent again, no environment has a host or a
 * worker, and no model with a price has answered.
 */
const ABSENT = new Set([
  'run.jobs fairness_key',
  'channel.get unread_count',
  'webhook.deliveries attempt_log',
  'webhook.deliveries resend_of',
  'channel.list unread_count',
  ...['get', 'turns', 'turn'].map((name) => `session.${name} credit_cost_milli`),
  'environment.get place',
  'environment.get isolation',
  ...['place', 'isolation', 'worker_state', 'jobs_in_progress'].map(
    (member) => `environment.list ${member}`,
  ),
])

t.test(
  'a loop run keeps its published name, and returns waiting_on only if it is requested',
  async (t) => {
    const plain = await s.ok('run.get', { id: looped['id'] })
    t.match(plain, { name: 'Adds', waiting_on: undefined })
    t.match(await s.ok('run.get', { id: looped['id'], include: ['waiting_on'] }), {
      name: 'Adds',
      waiting_on: { kind: 'worker', step_key: 'work' },
    })
  },
)

t.test('changes return additional members too, and a repeat may request others', async (t) => {
  const input = { id: workflow['id'] }
  const headers = { 'idempotency-key': 'adds' }
  const first = await s.call('workflow.run', input, { headers })
  const again = await s.call('workflow.run', { ...input, include: ['name'] }, { headers })
  t.equal(again.body['id'], first.body['id'])
  t.match([first.body, again.body], [{ name: undefined }, { name: 'Named' }])
})

t.test('the pages of a list may include different members', async (t) => {
  const page = await s.ok('run.list', { limit: 1 })
  const next = { limit: 1, cursor: page['next_cursor'], include: ['name'] }
  t.equal(listOf(await s.ok('run.list', next)).length, 1)
})

t.test('saving a definition warns of events that nothing publishes', async (t) => {
  const include = ['warnings']
  const wait = { code: 'event_type_not_published', field: 'steps[1].config.event_type' }
  const triggers = [{ kind: 'event', config: { event_type: 'table.column.*' } }]
  t.match(await s.ok('loop.create', { name: 'Warned', steps, triggers, include }), {
    warnings: [{ code: wait.code, field: 'triggers[0].config.event_type' }, wait],
  })
  t.match(await s.ok('workflow.get', { id: workflow['id'], include }), {
    warnings: [{ ...wait, field: 'spec.steps[1].config.event_type' }],
  })
  const sound = [
    { kind: 'sleep', config: { duration: '1s' } },
    { kind: 'wait_for_event', config: { event_type: 'signal.go' } },
  ]
  t.strictSame((await s.ok('loop.create', { name: 'Fine', steps: sound, include }))['warnings'], [])
})

t.test('saving a webhook warns of events that nothing publishes', async (t) => {
  const include = ['warnings']
  const events = ['run.failed', 'run.faild', 'shop.*', 'signal.*', 'signal.go', '*', 'run.resume']
  const made = await s.ok('webhook.create', { name: 'warned', events, include })
  const warnings = [1, 3, 6].map((at) => ({
    code: 'event_type_not_published',
    field: `events[${at}]`,
    message: `Nothing publishes ${events[at]} in this version, so the webhook receives nothing for it.`,
  }))
  t.strictSame(made['warnings'], warnings)
  const { id: webhook_id } = made
  t.strictSame((await s.ok('webhook.get', { webhook_id, include }))['warnings'], warnings)
  t.notOk('warnings' in (await s.ok('webhook.get', { webhook_id })), 'only on request')
  const fixed = await s.ok('webhook.update', { webhook_id, events: ['run.failed'], include })
  t.strictSame(fixed['warnings'], [])
})

t.test('the client requests every additional member by default', async (t) => {
  const baton = client({ url: s.url, key: s.key })
  const id = String(run['id'])
  t.match(await baton.run.get({ id }), { name: 'Named', waiting_on: { kind: 'worker' } })
  t.match(await baton.run.get({ id, include: ['name'] }), { name: 'Named', waiting_on: undefined })
  t.match(await baton.run.get({ id, include: [] }), { name: undefined })
})
