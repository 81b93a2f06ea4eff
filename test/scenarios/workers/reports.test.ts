/** Reports by workers: which reports end a job, cause a retry, or are discarded. */

import t from 'tap'
import { service, type TestWorker } from '../../support/service.ts'
import { until } from '../support/given.ts'
import {
  ask,
  beat,
  claim,
  hasty,
  jobOf,
  type Received,
  runOf,
  start,
  story,
} from '../support/sockets.ts'

const s = await service(hasty)
t.teardown(() => s.stop())
const statusOf = async (run: Received): Promise<unknown> => (await runOf(s, run))['status']
/** Connects a worker for one action, starts a run of this action and claims its first job. */
async function given(
  action_name: string,
  attempts?: number,
): Promise<{ worker: TestWorker; run: Received; job: Received }> {
  const worker = await s.worker({ action_names: [action_name] })
  const run = await start(s, action_name, attempts === undefined ? {} : { attempts })
  return { worker, run, job: await worker.job() }
}
/**
 * Reports a job. Returns the acknowledgement, and the code of the error frame if one accompanies
 * it.
 */
async function both(
  worker: TestWorker,
  job: Received,
  more: Record<string, unknown> = {},
): Promise<{ ack: Received; code: unknown }> {
  const message_id = `both_${Math.random()}`
  const ack = await ask(
    worker,
    { type: 'job.report', message_id, job_id: job['id'], lease_token: job['lease_token'], ...more },
    'job.report.ack',
  )
  await beat(worker, job)
  const error = worker.frames.find(
    (frame) => frame['type'] === 'error' && frame['message_id'] === message_id,
  )
  return { ack, code: (error?.['error'] as { code?: unknown } | undefined)?.code }
}

t.test('completed: the result is stored as it was sent', async (t) => {
  const { worker, run, job } = await given('done')
  const result = { output: [1, 'two', null], nested: { ok: true } }
  const ack = await worker.report(job, { status: 'completed', result })
  t.strictSame(
    { ...ack, message_id: '' },
    { type: 'job.report.ack', message_id: '', job_id: job['id'], duplicate: false },
  )
  t.match(await jobOf(s, run), { status: 'completed', result, claim_attempt: 1 })
  t.match(await runOf(s, run), { status: 'completed', result: { do: result } })
  worker.close()
})

t.test('a report without a status counts as completed', async (t) => {
  const { worker, run, job } = await given('implicit')
  await worker.report(job, {})
  t.equal(await statusOf(run), 'completed')
  worker.close()
})

t.test(
  'failed with attempts left: the job is offered at once under a new lease, and the last failure counts',
  async (t) => {
    const { worker, run, job } = await given('flaky', 2)
    t.match(
      await worker.report(job, { status: 'failed', error_type: 'Error', error_message: 'no luck' }),
      { duplicate: false },
    )
    const again = await worker.job()
    t.match(again, { id: job['id'], claim_attempt: 2 })
    t.not(again['lease_token'], job['lease_token'])
    await worker.report(again, {
      status: 'failed',
      error_type: 'Error',
      error_message: 'still no luck',
      result: { ignored: true },
    })
    t.match(await jobOf(s, run), {
      status: 'failed',
      error_type: 'Error',
      error_message: 'still no luck',
      claim_attempt: 2,
      max_attempts: 2,
    })
    t.match(await runOf(s, run), { status: 'failed', error_message: /still no luck/ })
    t.match(
      (await story(s, run)).filter((type) => /retried|failed/.test(type)),
      ['action.retried', 'step.retried', 'action.failed', 'step.failed', 'run.failed'],
    )
    worker.close()
  },
)

t.test('WorkerOverCapacity does not count as an attempt', async (t) => {
  const { worker, run, job } = await given('crowded')
  await worker.report(job, { status: 'failed', error_type: 'WorkerOverCapacity' })
  const again = await worker.job()
  t.match(again, { id: job['id'], claim_attempt: 1 }, 'the only attempt is not used up')
  await worker.report(again)
  t.equal(await statusOf(run), 'completed')
  t.notOk((await story(s, run)).some((type) => type.endsWith('retried')))
  worker.close()
})

t.test(
  'cancelled without a request: the worker is stopping, and the job is handed to another worker',
  async (t) => {
    const { worker, run, job } = await given('moved')
    await worker.report(job, { status: 'cancelled', error_type: 'Cancelled' })
    worker.close()
    const other = await s.worker({ action_names: ['moved'] })
    const again = await other.job()
    t.match(again, { id: job['id'], claim_attempt: 1 })
    await other.report(again)
    t.equal(await statusOf(run), 'completed')
    other.close()
  },
)

t.test(
  'failed with error_type Cancelled counts as cancelled only if a cancellation was requested',
  async (t) => {
    const asked = await given('legacy')
    await s.ok('run.cancel', { id: asked.run['id'] })
    await asked.worker.report(asked.job, { status: 'failed', error_type: 'Cancelled' })
    t.match(await jobOf(s, asked.run), { status: 'cancelled', cancel_requested: true })
    t.equal(await statusOf(asked.run), 'cancelled')
    asked.worker.close()
    const unasked = await given('deadline', 2)
    await unasked.worker.report(unasked.job, { status: 'failed', error_type: 'Cancelled' })
    t.match(await unasked.worker.job(), { claim_attempt: 2 })
    await s.ok('run.cancel', { id: unasked.run['id'] })
    unasked.worker.close()
  },
)

t.test(
  'a report that is repeated, or sent concurrently, is a duplicate and changes nothing',
  async (t) => {
    const { worker, run, job } = await given('twice')
    const [first, second] = await Promise.all([
      worker.report(job, { result: { n: 1 } }),
      worker.report(job, { result: { n: 2 } }),
    ])
    t.match([first['duplicate'], second['duplicate']], [false, true])
    const third = await both(worker, job, { status: 'failed' })
    t.match(third, { ack: { duplicate: true }, code: undefined })
    t.match(await jobOf(s, run), { status: 'completed', result: { n: 1 } })
    t.equal((await story(s, run)).filter((type) => type === 'run.completed').length, 1)
    worker.close()
  },
)

t.test(
  'a lost lease: the report gets job.report.ack and the error lease_lost with the same message_id',
  async (t) => {
    const { worker, run, job } = await given('slow', 3)
    const next = await s.worker({ action_names: ['slow'] })
    const again = await next.job()
    t.match(again, { id: job['id'], claim_attempt: 2 }, 'the job is claimed again after one lease')
    t.match(await both(worker, job, { result: { from: 'the past' } }), {
      ack: { duplicate: false },
      code: 'lease_lost',
    })
    t.match(await beat(worker, job), { cancel: { job_id: job['id'], reason: 'lease_lost' } })
    await next.report(again, { result: { from: 'the present' } })
    t.match(await runOf(s, run), { result: { do: { from: 'the present' } } })
    t.match(
      (await story(s, run)).filter((type) => type.endsWith('retried')),
      ['action.retried', 'step.retried'],
    )
    for (const end of [worker, next]) end.close()
  },
)

t.test(
  'a result after the end of its lease is accepted until the job is claimed again',
  async (t) => {
    const { worker, run, job } = await given('late', 3)
    worker.send({ type: 'worker.ready', available_slots: 0 })
    await until(
      () => jobOf(s, run),
      (now) => now['status'] === 'queued',
      'the end of the lease',
      200,
    )
    t.match(await both(worker, job, { result: { late: true } }), {
      ack: { duplicate: false },
      code: undefined,
    })
    t.match(await runOf(s, run), { status: 'completed', result: { do: { late: true } } })
    t.match(await jobOf(s, run), { status: 'completed', worker_instance_id: String })
    worker.close()
  },
)

t.test(
  'a report with an unknown job or an unknown lease token is acknowledged and discarded',
  async (t) => {
    const { worker, run, job } = await given('known')
    for (const [id, token] of [
      ['job_nothing', job['lease_token']],
      [job['id'], 'lt_nothing'],
      [job['id'], `${job['lease_token']}x`],
      ['', ''],
    ]) {
      t.match(await both(worker, { id, lease_token: token } as unknown as Received), {
        ack: { job_id: id, duplicate: false },
        code: 'lease_lost',
      })
    }
    await worker.report(job)
    t.equal(await statusOf(run), 'completed', 'the valid lease is unaffected')
    worker.close()
  },
)

t.test(
  'a result above one mebibyte fails the job as ResultTooLarge, and the socket stays open',
  async (t) => {
    const { worker, run, job } = await given('huge', 2)
    t.match(await worker.report(job, { result: { text: 'x'.repeat(1_100_000) } }), {
      duplicate: false,
    })
    t.match(
      await jobOf(s, run),
      { status: 'failed', error_type: 'ResultTooLarge', claim_attempt: 1 },
      'the action was performed, so it is not repeated',
    )
    t.equal(await statusOf(run), 'failed')
    t.equal(worker.socket.readyState, worker.socket.OPEN)
    const fits = await start(s, 'huge')
    await worker.report(await worker.job(), { result: { text: 'x'.repeat(900_000) } })
    t.equal(await statusOf(fits), 'completed', 'a result below the limit is stored')
    worker.close()
  },
)

t.test('a job whose run was cancelled: the result is discarded as a duplicate', async (t) => {
  const waiting = await start(s, 'gone')
  await s.ok('run.cancel', { id: waiting['id'] })
  t.match(await jobOf(s, waiting), { status: 'cancelled' }, 'a waiting job ends at once')
  const worker = await s.worker({ action_names: ['gone'] })
  t.strictSame(await claim(worker), [])
  const run = await start(s, 'gone')
  const job = await worker.job()
  await s.ok('run.cancel', { id: run['id'] })
  await worker.report(job, { status: 'cancelled' })
  t.match(await both(worker, job), { ack: { duplicate: true }, code: undefined })
  t.equal(await statusOf(run), 'cancelled')
  worker.close()
})
