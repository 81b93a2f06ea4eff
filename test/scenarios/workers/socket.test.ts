/**
 * The worker socket over the real stack: upgrades, registration, reconnects, draining and the
 * frames that are refused.
 */

import t from 'tap'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { ask, claim, faultOf, open, registered, runOf, seen, start } from '../support/sockets.ts'

const s = await service()
t.teardown(() => s.stop())
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
async function keyOf(role: string): Promise<{ id: string; key: string }> {
  const principal = await s.ok('principal.create', {
    name: `${role} ${Math.random()}`,
    role_ids: [role],
  })
  return (await s.ok('key.create', {
    name: `key ${Math.random()}`,
    principal_id: principal['id'],
  })) as unknown as { id: string; key: string }
}

t.test('an upgrade is answered with 101, 401, 403 or 404 by key and project', async (t) => {
  const viewer = await keyOf('role_viewer')
  const other = await s.ok('project.create', { name: 'Elsewhere', handle: 'elsewhere' })
  const operator = await keyOf('role_operator')
  t.equal((await open(s.url, { headers: bearer(operator.key) })).status, 101)
  t.equal((await open(s.url)).status, 401, 'no credential, even on loopback')
  t.equal(
    (await open(s.url, { headers: bearer(`${s.key.slice(0, -1)}-`) })).status,
    401,
    'an unknown key',
  )
  t.equal(
    (await open(s.url, { headers: bearer(viewer.key) })).status,
    403,
    'a key without work.execute',
  )
  t.equal(
    (await open(s.url, { headers: bearer(operator.key), project: String(other['handle']) })).status,
    403,
    'a key of another project',
  )
  t.equal(
    (await open(s.url, { headers: bearer(s.key), project: 'nowhere' })).status,
    404,
    'no such project',
  )
})

t.test('a key may be sent as a sub-protocol, and only the plain protocol is echoed', async (t) => {
  const protocols = [
    'service.worker.v1',
    `service.bearer.${Buffer.from(s.key).toString('base64url')}`,
  ]
  const { status, socket } = await open(s.url, { protocols })
  t.equal(status, 101)
  t.equal(socket?.protocol, 'service.worker.v1')
  if (socket) t.match(await registered(socket, 'browser'), { type: 'worker.registered' })
  socket?.close()
  t.equal(
    (
      await open(s.url, {
        protocols: [
          'service.worker.v1',
          `service.bearer.${Buffer.from('bat_nobody').toString('base64url')}`,
        ],
      })
    ).status,
    401,
  )
  t.equal(
    (await open(s.url, { headers: bearer(s.key) })).socket?.protocol,
    '',
    'no sub-protocol is echoed if none was sent',
  )
})

t.test(
  'worker.register is answered with worker.registered as the first frame, with the default timing',
  async (t) => {
    const worker = await s.worker({ type: null })
    const answer = ask(
      worker,
      { type: 'worker.register', worker_instance_id: 'plain' },
      'worker.registered',
    )
    worker.send({ type: 'jobs.claim', message_id: 'early', available_slots: 0 })
    worker.send({
      type: 'job.heartbeat',
      message_id: 'unknown',
      job_id: 'job_x',
      lease_token: 'lt_x',
    })
    t.match(await answer, {
      worker_session_token: /^\S{20,}$/,
      lease: { lease_duration_seconds: 60, heartbeat_cadence_seconds: 20 },
    })
    await seen(worker, 'job.heartbeat.ack')
    t.equal(worker.frames[0]?.['type'], 'worker.registered', 'earlier frames are answered after it')
    const items = (await s.ok('worker.list'))['items'] as unknown as Record<string, unknown>[]
    t.match(
      items.find((item) => item['worker_instance_id'] === 'plain'),
      {
        state: 'online',
        concurrency_limit: 1,
        queues: [],
        action_names: [],
        models: [],
        capabilities: [],
      },
      'defaults',
    )
    t.equal(
      await faultOf(worker, { type: 'worker.register', worker_instance_id: 'again' }),
      'bad_frame',
      'one registration per connection',
    )
    worker.close()
  },
)

t.test('the registration of a worker is listed', async (t) => {
  const given = {
    name: 'mailer',
    version: '2.0.1',
    concurrency_limit: 3,
    queues: ['mail'],
    action_names: ['send'],
    models: [{ provider: 'local', model: 'small-1' }],
    capabilities: ['keep-warm:lifetime'],
    environment_id: 'env_1',
  }
  const worker = await s.worker({ worker_instance_id: 'full', available_slots: 3, ...given })
  const items = (await s.ok('worker.list'))['items'] as unknown as Record<string, unknown>[]
  t.match(
    items.find((item) => item['worker_instance_id'] === 'full'),
    { ...given, state: 'online', leased: 0 },
  )
  worker.close()
})

t.test(
  'a process that reconnects with its token keeps its session, and the older connection closes with 4410',
  async (t) => {
    const first = await s.worker({ worker_instance_id: 'phoenix' })
    const token = (await seen(first, 'worker.registered'))['worker_session_token']
    const second = await s.worker({ type: null })
    const back = await ask(
      second,
      { type: 'worker.register', worker_instance_id: 'phoenix', worker_session_token: token },
      'worker.registered',
    )
    t.equal(back['worker_session_token'], token)
    t.match(await first.closed, { code: 4410 })
    second.close()
  },
)

t.test(
  'another process with an id in use is rejected with worker_instance_conflict and 4409',
  async (t) => {
    const first = await s.worker({ worker_instance_id: 'twin' })
    for (const more of [{}, { worker_session_token: 'wst_unknown' }]) {
      const second = await s.worker({ type: null })
      const refused = await ask(
        second,
        { type: 'worker.register', worker_instance_id: 'twin', ...more },
        'error',
      )
      t.match(
        refused['error'],
        { code: 'worker_instance_conflict', message: /twin .*default/ },
        'the message names instance and project',
      )
      t.match(await second.closed, { code: 4409 })
    }
    first.close()
    await first.closed
    const taken = await until(
      async () => s.worker({ worker_instance_id: 'twin' }),
      (next) => next.frames[0]?.['type'] === 'worker.registered',
      'takeover',
    )
    t.pass('an id with a closed socket and no leases is taken over at once')
    t.not(
      taken.frames[0]?.['worker_session_token'],
      first.frames[0]?.['worker_session_token'],
      'in a new session',
    )
    taken.close()
  },
)

t.test('invalid frames are answered with an error, and the connection stays open', async (t) => {
  const worker = await s.worker({ type: null })
  t.equal(await faultOf(worker, { type: 'jobs.claim' }), 'not_registered')
  const noJson = worker.wait((frame) => frame['type'] === 'error')
  worker.socket.send('{')
  t.match((await noJson)['error'], { code: 'bad_frame' })
  t.equal(await faultOf(worker, { type: 'worker.sing' }), 'unknown_frame')
  await ask(worker, { type: 'worker.register', worker_instance_id: 'clumsy' }, 'worker.registered')
  t.equal(await faultOf(worker, { type: 'jobs.claim', available_slots: -1 }), 'bad_frame')
  t.equal(await faultOf(worker, { type: 'job.heartbeat', job_id: 'job_1' }), 'bad_frame')
  const before = worker.frames.length
  for (let i = 0; i < 20; i++) worker.send({ type: 'keepalive', message_id: `k${i}` })
  t.equal(await faultOf(worker, { type: 'unknown' }), 'unknown_frame')
  t.equal(worker.frames.length, before + 1, 'keepalive is never answered')
  t.equal(worker.socket.readyState, worker.socket.OPEN)
  worker.close()
})

t.test(
  'an invalid registration closes the connection, and an invalid report is never a bad frame',
  async (t) => {
    const nobody = await s.worker({ type: null })
    t.equal(
      await faultOf(nobody, { type: 'worker.register' }),
      'bad_frame',
      'without an instance id',
    )
    t.equal((await nobody.closed).code, 4400)
    const worker = await s.worker({ action_names: ['mumble'] })
    const run = await start(s, 'mumble')
    const job = await worker.job()
    t.match(
      await ask(
        worker,
        { type: 'job.report', job_id: job['id'], lease_token: job['lease_token'], result: 'text' },
        'job.report.ack',
      ),
      { job_id: job['id'], duplicate: false },
    )
    t.match(
      await until(
        () => runOf(s, run),
        ({ status }) => status !== 'suspended',
        'the end of the run',
      ),
      { status: 'failed', error_type: 'ResultInvalid', error_message: /result/ },
    )
    worker.close()
  },
)

t.test(
  'worker.drain is sent on request of an operator and again after a reconnect, and is acknowledged',
  async (t) => {
    const worker = await s.worker({ worker_instance_id: 'veteran', action_names: ['rest'] })
    const token = (await seen(worker, 'worker.registered'))['worker_session_token']
    const held = ask(worker, { type: 'jobs.claim', available_slots: 1 }, 'jobs.claimed')
    const drained = await s.call('worker.drain', { worker_instance_id: 'veteran' })
    t.match(drained, { status: 202, body: { worker_instance_id: 'veteran', state: 'draining' } })
    t.ok(await seen(worker, 'worker.drain'))
    t.strictSame((await held)['jobs'], [], 'an open claim is answered without jobs')
    t.ok(await ask(worker, { type: 'worker.draining' }, 'worker.draining.ack'))
    await start(s, 'rest')
    t.strictSame(await claim(worker, { available_slots: 1 }), [], 'a draining worker gets no jobs')
    const listed = async () =>
      ((await s.ok('worker.list'))['items'] as unknown as Record<string, unknown>[]).find(
        (item) => item['worker_instance_id'] === 'veteran',
      )
    t.equal((await listed())?.['state'], 'draining')
    const again = await s.worker({ worker_instance_id: 'veteran', worker_session_token: token })
    t.ok(await seen(again, 'worker.drain'), 'repeated on the new connection')
    again.close()
    await again.closed
    const fresh = await until(
      () => s.worker({ worker_instance_id: 'veteran', action_names: ['rest'] }),
      (next) => next.frames[0]?.['type'] === 'worker.registered',
      'a new session',
    )
    t.equal(
      (await claim(fresh, { available_slots: 1 })).length,
      1,
      'a new process with the id gets jobs',
    )
    t.match(await s.call('worker.drain', { worker_instance_id: 'nobody' }), {
      status: 404,
      body: { error: { code: 'not_found' } },
    })
    fresh.close()
  },
)

t.test('a worker that drains on its own is acknowledged and gets no more jobs', async (t) => {
  const worker = await s.worker({ action_names: ['leave'] })
  const held = ask(worker, { type: 'jobs.claim', available_slots: 1 }, 'jobs.claimed')
  t.ok(await ask(worker, { type: 'worker.draining' }, 'worker.draining.ack'))
  t.strictSame((await held)['jobs'], [])
  await start(s, 'leave')
  t.strictSame(await claim(worker), [])
  t.notOk(worker.frames.some((frame) => frame['type'] === 'work.available'))
  worker.close()
})

t.test(
  'a revoked key closes its connections within five seconds: invalid_actor, then 4401',
  async (t) => {
    const key = await keyOf('role_operator')
    const worker = await s.worker({}, { key: key.key })
    const told = worker.wait((frame) => frame['type'] === 'error', 'invalid_actor')
    const revoked = Date.now()
    await s.ok('key.revoke', { id: key.id })
    t.match((await told)['error'], { code: 'invalid_actor' })
    t.match(await worker.closed, { code: 4401 })
    t.ok(Date.now() - revoked < 5000)
    t.equal((await open(s.url, { headers: bearer(key.key) })).status, 401)
  },
)

t.test('workers on the same machine need no credential if the setting allows it', async (t) => {
  const lenient = await service({ BATON_ANONYMOUS_WORKER: 'on' })
  t.teardown(() => lenient.stop())
  const { status, socket } = await open(lenient.url)
  t.equal(status, 101)
  if (!socket) return
  t.match(await registered(socket, 'local'), { type: 'worker.registered' })
  t.match((await lenient.ok('worker.list'))['items'], [
    { worker_instance_id: 'local', principal_id: 'anonymous' },
  ])
  t.equal(
    (await open(lenient.url, { headers: bearer('bat_wrong') })).status,
    401,
    'a credential that is sent must be valid',
  )
  t.equal((await open(lenient.url, { project: 'nowhere' })).status, 404)
  socket.close()
})
