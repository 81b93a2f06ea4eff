/**
 * Leases of workers over the real stack: expiry, lost connections, takeovers, and the list of
 * workers.
 */

import t from 'tap'
import WebSocket from 'ws'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'
import {
  ask,
  beat,
  claim,
  hasty,
  jobOf,
  type Received,
  registered,
  runOf,
  seen,
  start,
  story,
} from '../support/sockets.ts'

const s = await service(hasty)
t.teardown(() => s.stop())
const listed = async (instance: string): Promise<Record<string, unknown> | undefined> =>
  ((await s.ok('worker.list'))['items'] as unknown as Record<string, unknown>[]).find(
    (item) => item['worker_instance_id'] === instance,
  )
const tokenOf = async (worker: Parameters<typeof seen>[0]) =>
  (await seen(worker, 'worker.registered'))['worker_session_token']

t.test(
  'an expired lease hands the job to another worker, or fails the run after the last attempt',
  async (t) => {
    const silent = await s.worker({ action_names: ['work', 'once'], concurrency_limit: 2 })
    const [run, once] = [await start(s, 'work', { attempts: 2 }), await start(s, 'once')]
    const jobs = [await silent.job(), await silent.job()]
    silent.socket.terminate()
    t.match(
      await jobOf(s, run),
      { status: 'claimed' },
      'a closed socket alone does not end the lease',
    )
    const other = await s.worker({ action_names: ['work'] })
    const asked = performance.now()
    const job = await other.job()
    t.ok(performance.now() - asked > 1500, 'the job is free only after the lease')
    t.match(job, {
      id: jobs.find((lost) => lost['action_name'] === 'work')?.['id'],
      claim_attempt: 2,
    })
    await other.report(job, { result: { by: 'other' } })
    t.match(await runOf(s, run), { status: 'completed', result: { do: { by: 'other' } } })
    const page = await s.ok('run.events', { id: run['id'], limit: 200 })
    t.match(
      (page['items'] as unknown as Received[]).find(
        (event) => event['event_type'] === 'step.retried',
      ),
      { payload: { error_type: 'lease_expired', attempt: 2 } },
    )
    await until(
      () => runOf(s, once),
      (now) => now['status'] === 'failed',
      'the end of the other lease',
      200,
    )
    t.match(await jobOf(s, once), {
      status: 'failed',
      error_type: 'lease_expired',
      claim_attempt: 1,
      max_attempts: 1,
    })
    t.match(await runOf(s, once), { error_message: /heartbeats of the worker stopped/ })
    other.close()
  },
)

t.test(
  'jobs survive a dropped socket: the worker reconnects with its token, renews and reports',
  async (t) => {
    const first = await s.worker({
      worker_instance_id: 'survivor',
      action_names: ['survive'],
      concurrency_limit: 2,
    })
    const run = await start(s, 'survive')
    const job = await first.job()
    const token = await tokenOf(first)
    first.socket.terminate()
    await until(
      () => listed('survivor'),
      (item) => item?.['state'] === 'stale',
      'the drop being seen',
    )
    t.equal((await listed('survivor'))?.['leased'], 1, 'listed as stale with its job')
    const second = await s.worker({
      worker_instance_id: 'survivor',
      worker_session_token: token,
      action_names: ['survive'],
      concurrency_limit: 2,
    })
    const lease = async () => {
      const { last_heartbeat_at = '', lease_expires_at = '' } = await jobOf(s, run)
      return { heard: Date.parse(last_heartbeat_at), expires: Date.parse(lease_expires_at) }
    }
    const beats = []
    for (let i = 0; i < 4; i++) {
      t.notOk((await beat(second, job))['cancel'])
      beats.push(await lease())
      await new Promise((later) => setTimeout(later, 900))
    }
    for (const [i, { heard, expires }] of beats.entries()) {
      t.equal(expires - heard, 3000, 'each heartbeat renews the lease for its full duration')
      t.ok(heard > (beats[i - 1]?.heard ?? 0), 'the record shows the last heartbeat')
    }
    for (let i = 0; i < 2; i++) await start(s, 'survive')
    const more = await claim(second, { available_slots: 2 })
    t.equal(more.length, 1, 'the earlier lease uses a slot, although the claim asks for two')
    t.match(await second.report(job, { result: { kept: true } }), { duplicate: false })
    t.match(await runOf(s, run), { status: 'completed', result: { do: { kept: true } } })
    t.notOk((await story(s, run)).includes('step.retried'))
    const after = await s.worker({
      worker_instance_id: 'survivor',
      worker_session_token: token,
      action_names: ['survive'],
      concurrency_limit: 2,
    })
    t.match(
      await after.report(job),
      { duplicate: true },
      'a report repeated after the next reconnect',
    )
    for (const rest of [...more, await after.job()]) await after.report(rest)
    after.close()
  },
)

t.test(
  'a job whose frame was lost with the connection is handed out again without counting an attempt',
  async (t) => {
    const registration = {
      worker_instance_id: 'deaf',
      action_names: ['listen'],
      concurrency_limit: 2,
    }
    const first = await s.worker(registration)
    const [kept, lost] = [await start(s, 'listen'), await start(s, 'listen')]
    const received = await first.job()
    const [missed = {}] = await claim(first)
    first.socket.terminate()
    const second = await s.worker({
      ...registration,
      worker_session_token: await tokenOf(first),
      leases: [received['lease_token']],
    })
    const [again = {}] = await claim(second)
    t.equal(again['id'], missed['id'])
    t.equal(again['claim_attempt'], 1)
    t.not(again['lease_token'], missed['lease_token'])
    t.match(await second.report(missed), {}, 'the earlier lease is superseded')
    for (const job of [received, again]) t.match(await second.report(job), { duplicate: false })
    for (const run of [kept, lost]) {
      t.match(await runOf(s, run), { status: 'completed' })
      t.notOk((await story(s, run)).includes('step.retried'))
    }
    second.close()
  },
)

t.test(
  'a process without its token waits for the takeover window; then the old leases expire at once',
  async (t) => {
    const first = await s.worker({ worker_instance_id: 'container', action_names: ['contain'] })
    const run = await start(s, 'contain', { attempts: 2 })
    const old = await first.job()
    first.socket.terminate()
    await first.closed
    const turned = await s.worker({ type: null })
    t.match(
      (await ask(turned, { type: 'worker.register', worker_instance_id: 'container' }, 'error'))[
        'error'
      ],
      { code: 'worker_instance_conflict' },
      'the former process may still be working',
    )
    const fresh = await until(
      () => s.worker({ worker_instance_id: 'container', action_names: ['contain'] }),
      (next) => next.frames[0]?.['type'] === 'worker.registered',
      'takeover',
      250,
    )
    t.not(await tokenOf(fresh), await tokenOf(first))
    const job = await fresh.job()
    t.match(job, { id: old['id'], claim_attempt: 2 })
    await fresh.report(job)
    t.equal((await runOf(s, run))['status'], 'completed')
    fresh.close()
  },
)

t.test('worker.list shows online, draining and ended workers with their jobs', async (t) => {
  const worker = await s.worker({
    worker_instance_id: 'seen',
    action_names: ['list'],
    concurrency_limit: 2,
  })
  await start(s, 'list')
  const job = await worker.job()
  t.match(await listed('seen'), { state: 'online', leased: 1, concurrency_limit: 2 })
  worker.send({ type: 'worker.draining' })
  await until(
    () => listed('seen'),
    (item) => item?.['state'] === 'draining',
    'draining',
  )
  await worker.report(job)
  t.equal((await listed('seen'))?.['leased'], 0)
  worker.close()
  await until(
    () => listed('seen'),
    (item) => item?.['state'] === 'ended',
    'ended after it has drained and closed its connection',
  )
})

t.test(
  'pings keep a quiet connection alive; a connection that answers none becomes stale',
  async (t) => {
    const quiet = await s.worker({ worker_instance_id: 'quiet' })
    const deaf = new WebSocket(
      `${s.url.replace('http', 'ws')}/v1/projects/default/workers/socket`,
      { headers: { authorization: `Bearer ${s.key}` }, autoPong: false },
    )
    await new Promise((open) => deaf.on('open', open))
    t.match(await registered(deaf, 'deaf'), { type: 'worker.registered' })
    await until(
      () => listed('deaf'),
      (item) => item?.['state'] === 'stale',
      'stale by silence',
      250,
    )
    t.equal((await listed('quiet'))?.['state'], 'online')
    t.equal(deaf.readyState, deaf.OPEN, 'silence does not close a socket at once')
    deaf.terminate()
    quiet.close()
  },
)
