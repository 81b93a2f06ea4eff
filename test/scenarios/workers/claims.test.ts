/**
 * Claims by workers over the real stack: timing, filters, repeats, heartbeats and cancellations.
 */

import t from 'tap'
import { service, type TestWorker } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { ask, beat, claim, hasty, jobOf, runOf, seen, start, story } from '../support/sockets.ts'

const s = await service(hasty)
t.teardown(() => s.stop())
const hints = (worker: TestWorker): number =>
  worker.frames.filter((frame) => frame['type'] === 'work.available').length
const finish = async (worker: TestWorker, jobs: readonly Record<string, unknown>[]) => {
  for (const job of jobs) await worker.report(job)
}

t.test('worker.registered contains the configured lease timing', async (t) => {
  const worker = await s.worker()
  t.match(await seen(worker, 'worker.registered'), {
    lease: { lease_duration_seconds: 3, heartbeat_cadence_seconds: 1 },
  })
  worker.close()
})

t.test(
  'a jobs.claim without matching jobs gets an empty answer within the cadence, then work.available',
  async (t) => {
    const worker = await s.worker({ action_names: ['nothing'] })
    const asked = performance.now()
    t.strictSame(await claim(worker), [])
    const took = performance.now() - asked
    t.ok(took > 800 && took < 1500, `held for the poll time: ${took} ms`)
    await seen(worker, 'work.available')
    t.strictSame(
      await claim(worker, { available_slots: 0 }),
      [],
      'a claim with zero slots is valid',
    )
    worker.close()
  },
)

t.test(
  'jobs.claimed is sent as soon as a job exists, and a claimed job has only the documented members',
  async (t) => {
    const worker = await s.worker({ action_names: ['send'] })
    const claimed = ask(worker, { type: 'jobs.claim', available_slots: 2 }, 'jobs.claimed')
    const run = await start(s, 'send', { parameters: { to: 'a@b.test' } })
    const [job, ...more] = (await claimed)['jobs'] as unknown as Record<string, never>[]
    t.strictSame(more, [])
    t.strictSame(
      { ...job, id: '', lease_token: '' },
      {
        id: '',
        kind: 'action_execution',
        origin: 'loop_action_step',
        executor_kind: 'customer_worker',
        queue: 'default',
        action_name: 'send',
        run_id: run['id'],
        step_id: `${run['id']}:do`,
        spec: { action_name: 'send', parameters: { to: 'a@b.test' } },
        lease_token: '',
        claim_attempt: 1,
        lease_duration_seconds: 3,
        heartbeat_cadence_seconds: 1,
      },
    )
    t.match(
      job,
      { id: /^job_/, lease_token: /^[\x21-\x7e]+$/ },
      'the token is legal in an HTTP header',
    )
    t.match(await jobOf(s, run), { id: job?.['id'], status: 'claimed', claim_attempt: 1 })
    await finish(worker, job ? [job] : [])
    worker.close()
  },
)

t.test(
  'a claim repeated with its message_id gets the same jobs, also on a new connection of the session',
  async (t) => {
    for (let i = 0; i < 2; i++) await start(s, 'twice')
    const worker = await s.worker({
      worker_instance_id: 'repeater',
      action_names: ['twice'],
      concurrency_limit: 5,
    })
    const ids = (jobs: readonly Record<string, unknown>[]) => jobs.map((job) => job['id'])
    const first = await claim(worker, { message_id: 'm1', available_slots: 1 })
    t.equal(first.length, 1)
    t.strictSame(await claim(worker, { message_id: 'm1', available_slots: 1 }), first)
    const second = await claim(worker, { message_id: 'm2', available_slots: 1 })
    t.notSame(ids(second), ids(first), 'another message id gets other jobs')
    const again = await s.worker({
      worker_instance_id: 'repeater',
      worker_session_token: (await seen(worker, 'worker.registered'))['worker_session_token'],
      action_names: ['twice'],
      concurrency_limit: 5,
    })
    t.strictSame(await claim(again, { message_id: 'm2', available_slots: 1 }), second)
    await finish(again, [...first, ...second])
    again.close()
  },
)

t.test(
  'work.available follows a claim that left slots free, and is repeated while jobs wait unclaimed',
  async (t) => {
    const worker = await s.worker({ action_names: ['hint'], concurrency_limit: 3 })
    await start(s, 'hint')
    await until(
      async () => hints(worker),
      (count) => count === 1,
      'the hint of a worker without a claim',
    )
    const [job] = await claim(worker, { available_slots: 3 })
    await until(
      async () => hints(worker),
      (count) => count === 2,
      'the hint after a partial answer',
    )
    await start(s, 'hint')
    await until(
      async () => hints(worker),
      (count) => count === 3,
      'the hint for the work that came since',
    )
    await start(s, 'hint')
    await new Promise((later) => setTimeout(later, 600))
    t.equal(hints(worker), 3, 'not more often than once per second')
    const rest = await claim(worker, { available_slots: 2 })
    t.equal(rest.length, 2)
    await finish(worker, [...(job ? [job] : []), ...rest])
    worker.close()
  },
)

t.test('filters of a claim replace the registered ones for this claim only', async (t) => {
  const worker = await s.worker({ action_names: ['usual'] })
  await start(s, 'special')
  t.strictSame(await claim(worker), [])
  const jobs = await claim(worker, { action_names: ['special'] })
  t.match(jobs, [{ action_name: 'special' }])
  await start(s, 'special')
  t.strictSame(await claim(worker), [], 'the registered filters apply again')
  await finish(worker, [...jobs, ...(await claim(worker, { action_names: ['special'] }))])
  worker.close()
})

t.test(
  'worker.ready changes filters and capacity, and triggers work.available for a matching job',
  async (t) => {
    const worker = await s.worker({ action_names: ['old'], concurrency_limit: 2 })
    const run = await start(s, 'new')
    worker.send({
      type: 'worker.ready',
      message_id: 'r1',
      action_names: ['new'],
      available_slots: 1,
    })
    await worker.wait((frame) => frame['type'] === 'work.available', 'work.available')
    t.notOk(
      worker.frames.some((frame) => frame['message_id'] === 'r1'),
      'the frame itself gets no reply',
    )
    await until(
      () => s.ok('worker.list', {}),
      (listed) => JSON.stringify(listed).includes('"action_names":["new"]'),
      'the registry knows',
    )
    t.match(await runOf(s, run), {
      paths: [{ waiting_on: { reason: 'waiting for a free slot: 1 worker can take it' } }],
    })
    await finish(worker, await claim(worker))
    worker.close()
  },
)

t.test(
  'job.heartbeat and generation.delta both renew the lease, and job.heartbeat.ack contains nothing else',
  async (t) => {
    const worker = await s.worker({ action_names: ['long', 'stream'] })
    const runs = [await start(s, 'long'), await start(s, 'stream')]
    const [beaten, streamed] = [await worker.job(), await worker.job()].sort((a) =>
      a['action_name'] === 'long' ? -1 : 1,
    ) as [Record<string, never>, Record<string, never>]
    for (let sequence = 1; sequence <= 10; sequence++) {
      await new Promise((later) => setTimeout(later, 450))
      worker.send({
        type: 'generation.delta',
        job_id: streamed['id'],
        lease_token: streamed['lease_token'],
        sequence,
        delta: { text: 'Par' },
      })
      if (sequence % 2 === 0)
        t.strictSame(
          { ...(await beat(worker, beaten)), message_id: '' },
          { type: 'job.heartbeat.ack', message_id: '', job_id: beaten['id'] },
        )
    }
    for (const job of [beaten, streamed])
      t.match(
        await worker.report(job),
        { job_id: job['id'], duplicate: false },
        'after 4.5 s under a lease of 3 s',
      )
    for (const run of runs) {
      t.equal((await runOf(s, run))['status'], 'completed')
      t.notOk((await story(s, run)).includes('step.retried'))
    }
    t.notOk(
      worker.frames.some((frame) => frame['type'] === 'generation.delta.ack'),
      'a delta gets no reply',
    )
    worker.close()
  },
)

t.test(
  'a cancellation is pushed as job.cancel and repeated in both forms by every heartbeat',
  async (t) => {
    const worker = await s.worker({ action_names: ['stop'] })
    const run = await start(s, 'stop')
    const job = await worker.job()
    const pushed = worker.wait((frame) => frame['type'] === 'job.cancel', 'job.cancel')
    await s.ok('run.cancel', { id: run['id'], reason: 'no longer needed' })
    t.match(await pushed, {
      job_id: job['id'],
      reason: 'no longer needed',
      requested_at: /^\d{4}-.*\.\d{3}Z$/,
    })
    for (let i = 0; i < 2; i++) {
      t.match(await beat(worker, job), {
        job_id: job['id'],
        cancel: { job_id: job['id'], reason: 'no longer needed', requested_at: String },
        directives: { should_cancel: true },
      })
    }
    t.match(await jobOf(s, run), {
      status: 'claimed',
      cancel_requested: true,
      waiting_on: { kind: 'cancel' },
    })
    t.match(await worker.report(job, { status: 'cancelled', error_type: 'Cancelled' }), {
      duplicate: false,
    })
    t.equal((await runOf(s, run))['status'], 'cancelled')
    t.match(await jobOf(s, run), { status: 'cancelled' })
    worker.close()
  },
)

t.test('a cancelled run ends after one lease, even if its worker does not stop', async (t) => {
  const worker = await s.worker({ action_names: ['stubborn'] })
  const run = await start(s, 'stubborn')
  const job = await worker.job()
  await s.ok('run.cancel', { id: run['id'] })
  const asked = performance.now()
  const status = await until(
    async () => {
      await beat(worker, job)
      return (await runOf(s, run))['status'] as unknown as string
    },
    (now) => now === 'cancelled',
    'the forced end',
    400,
  )
  t.equal(status, 'cancelled')
  t.ok(performance.now() - asked > 2500, 'the run waited for one lease')
  t.match(await worker.report(job), { duplicate: true }, 'a late report is discarded')
  t.match(await beat(worker, job), {
    cancel: { job_id: job['id'], reason: 'lease_lost' },
    directives: { should_cancel: true },
  })
  worker.close()
})
