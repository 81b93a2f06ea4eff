/**
 * The data for operators, over the real stack: the overview of a project, its queues and workers,
 * the state of the installation, the next times of schedules, and test firings of triggers.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import {
  acting,
  ended,
  failing,
  fieldsOf,
  instant,
  listOf,
  sleeping,
  until,
} from '../support/given.ts'

const s = await service()
t.setTimeout(120_000)
t.teardown(() => s.stop())

t.test('the overview counts runs, failures and the questions that I may answer', async (t) => {
  const project = 'shop'
  const at = { project }
  await s.ok('project.create', { name: 'Shop', handle: project })
  const done = await s.ok('run.start', { ...at, spec: instant() })
  const broken = await s.ok('run.start', { ...at, spec: failing() })
  await s.ok('run.start', { ...at, spec: sleeping() })
  const person = await s.ok('principal.create', {
    ...at,
    name: 'clerk',
    role_ids: ['role_operator'],
  })
  const { key } = await s.ok('key.create', { ...at, name: 'clerk', principal_id: person['id'] })
  const ask = (target: unknown) =>
    s.ok('interaction.create', {
      ...at,
      kind: 'request_approval',
      title: 'Go?',
      target_user_ids: [target],
    })
  await Promise.all([ask(person['id']), ask('role:Operator'), ask('role:Admin')])
  for (const run of [done, broken])
    await until(
      () => s.ok('run.get', { ...at, id: run['id'] }),
      ({ status }) => ['completed', 'failed'].includes(String(status)),
    )
  const found = await s.ok('overview.get', at, { key: String(key) })
  t.match(found, {
    minutes: 60,
    step_seconds: 60,
    runs: { completed: 1, failed: 1, suspended: 1, queued: 0 },
    interactions: { waiting: 3, for_me: 2, at_least: false },
    period: { started: 3, completed: 1, failed: 1, cancelled: 0, p50_ms: Number },
    failures: [{ error_type: String, step_key: 'odd', count: 1, last_run_id: broken['id'] }],
  })
  const series = listOf(found, 'series')
  t.equal(series.length, 60)
  t.equal(
    series.reduce((sum, { started }) => sum + Number(started), 0),
    3,
  )
  t.equal(listOf(await s.ok('overview.get', { ...at, minutes: 10_080 }), 'series').length, 168)
  const { details } = await s.refused(
    'overview.get',
    { ...at, minutes: 10_081 },
    400,
    'bad_request',
  )
  t.ok(JSON.stringify(details).includes('minutes'))
  t.match(await s.ok('overview.get', {}), { runs: { failed: 0 } }, 'another project')
})

t.test('queues show open jobs and the workers that take them', async (t) => {
  const queueOf = async (name: string) =>
    listOf(await s.ok('queue.list', {})).find((queue) => queue['name'] === name)
  const runs = [
    await s.ok('run.start', { spec: acting('pack'), queue: 'parcels' }),
    await s.ok('run.start', { spec: acting('send'), queue: 'parcels' }),
  ]
  t.match(await queueOf('parcels'), {
    waiting: 2,
    in_work: 0,
    oldest_waiting_since: /Z$/,
    worker_count: 0,
    lines: [
      { action_name: 'pack', waiting: 1 },
      { action_name: 'send', waiting: 1 },
    ],
  })
  const worker = await s.worker({
    worker_instance_id: 'packer',
    concurrency_limit: 3,
    queues: ['parcels'],
    action_names: ['pack'],
  })
  const job = await worker.job()
  t.match(await queueOf('parcels'), {
    waiting: 1,
    in_work: 1,
    worker_count: 1,
    slots_used: 1,
    slots_free: 2,
    workers: [{ worker_instance_id: 'packer', state: 'online', slots_used: 1, slots_free: 2 }],
  })
  const workers = async (include: string[]) =>
    listOf(await s.ok('worker.list', { include })).find(
      (one) => one['worker_instance_id'] === 'packer',
    ) ?? ({} as Record<string, never>)
  t.match(await workers(['jobs', 'gateway', 'slots_free', 'draining']), {
    gateway: s.nodes[0]?.id,
    draining: false,
    slots_free: 2,
    jobs: [{ job_id: job['id'], queue: 'parcels', action_name: 'pack', run_id: runs[0]?.['id'] }],
  })
  t.notOk('jobs' in (await workers(['gateway'])))
  await worker.report(job)
  await ended(s, runs[0]?.['id'])
  t.match(await queueOf('parcels'), { waiting: 1, in_work: 0, slots_free: 3 })
  t.match(await queueOf('default'), { waiting: 0, worker_count: 0 })
  worker.close()
})

t.test('the state of the installation, for administrators of the organization only', async (t) => {
  const state = await s.ok('cluster.get')
  const [node] = listOf(state, 'nodes')
  t.match(node, {
    id: s.nodes[0]?.id,
    roles: ['gateway', 'shards'],
    version: String,
    host: String,
    pid: process.pid,
    started_at: /Z$/,
    stops: [],
  })
  const shards = listOf(state, 'shards')
  t.equal(Number(node?.['shards']), shards.length)
  t.ok(shards.every(({ owner, epoch }) => owner === node?.['id'] && Number(epoch) > 0))
  for (const { last_sequence, view_sequence, view_lag } of listOf(state, 'partitions')) {
    t.ok(Number(last_sequence) > 0)
    t.ok(Number(view_sequence) > 0)
    t.ok(Number(view_lag) >= 0)
  }
  const nats = state['nats'] as unknown as Record<string, never>
  t.match(nats, { connected: true, server: String, version: /^2\./ })
  const streams = listOf(nats, 'streams')
  t.match(
    streams.find(({ kind }) => kind === 'journal'),
    { name: 'JOURNAL_0', partition: 0, replicas: 1 },
  )
  t.ok(streams.every(({ messages, bytes }) => Number(messages) >= 0 && Number(bytes) >= 0))
  t.equal(new Set(streams.map(({ kind }) => kind)).size, 6)
  t.match(state, { files: { store: 'nats' }, storage: { stops: [] }, faults: [] })
  const again = await s.ok('cluster.get')
  t.ok(
    Date.parse(String(again['generated_at'])) - Date.parse(String(state['generated_at'])) >= 0,
    'a later reading, or the same',
  )
  const principal = await s.ok('principal.create', { name: 'local', role_ids: ['role_admin'] })
  const { key } = await s.ok('key.create', { name: 'local', principal_id: principal['id'] })
  await s.refused('cluster.get', {}, 403, 'permission_denied', { key: String(key) })
})

t.test('the next times of a schedule, and a test firing of a trigger', async (t) => {
  t.strictSame(
    await s.ok('schedule.next', {
      cron: '30 2 * * *',
      timezone: 'Europe/Berlin',
      since: '2031-03-29T00:00:00Z',
      count: 3,
    }),
    { times: ['2031-03-29T01:30:00.000Z', '2031-03-30T01:00:00.000Z', '2031-03-31T00:30:00.000Z'] },
    'the clock change skips 02:30 on one day',
  )
  t.equal(listOf(await s.ok('schedule.next', { interval: '15m' }), 'times').length, 5)
  const faulty = async (input: object) =>
    fieldsOf(await s.refused('schedule.next', { ...input }, 400, 'bad_request'))
  t.strictSame(await faulty({ cron: 'nonsense' }), ['cron'])
  t.strictSame(await faulty({ cron: '0 0 31 2 *' }), ['cron'])
  t.strictSame(await faulty({ cron: '@daily', timezone: 'Nowhere' }), ['timezone'])
  t.strictSame(await faulty({ interval: '1s' }), ['interval'])
  t.strictSame(await faulty({}), ['cron'])
  t.strictSame(await faulty({ cron: '@daily', since: '2031-02-31T00:00:00Z' }), ['since'])

  const loop = await s.ok('loop.create', {
    name: 'Nightly',
    steps: [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }],
    triggers: [
      { kind: 'schedule', key: 'night', enabled: false, config: { cron: '0 2 * * *' } },
      { kind: 'event', key: 'paid', config: { event_type: 'order.paid' } },
    ],
    output: { key: '${{ meta.trigger.key }}', test: '${{ meta.test }}', event: '${{ event }}' },
  })
  const fire = (trigger_id: string, more: object = {}) =>
    s.ok('loop.fire', { id: loop['id'], trigger_id, ...more })
  const night = await fire('night')
  t.match(await ended(s, night['id']), {
    status: 'completed',
    result: { key: 'night', test: true, event: { trigger_key: 'night', scheduled_at: /Z$/ } },
    source: { type: 'trigger' },
    meta: { event_type: 'trigger.test' },
  })
  const [, paid] = listOf(await s.ok('loop.triggers', { id: loop['id'] }))
  const run = await fire(String(paid?.['id']), { event: { n: 7 } })
  t.match(await ended(s, run['id']), { result: { key: 'paid', event: { n: 7 } } })
  await s.refused('loop.fire', { id: 'Nightly', trigger_id: 'none' }, 404, 'not_found')
  await s.ok('loop.update', { id: loop['id'], status: 'paused' })
  await s.refused('loop.fire', { id: loop['id'], trigger_id: 'paid' }, 409, 'loop_paused')
})
