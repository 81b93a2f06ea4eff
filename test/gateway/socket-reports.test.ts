/** Reports of workers: acknowledged when they are committed, whatever else they carry. */
import t from 'tap'
import { refuse } from '../../protocol/errors.ts'
import { sizes } from '../../protocol/worker.ts'
import { header, holding, leased, scene, settle } from './workers.ts'

const job = header(1)
const lease = { job_id: job.id, lease_token: leased(job).lease_token }

t.test('a report', async (t) => {
  const report = { type: 'job.report', message_id: 'm', ...lease }
  t.test('is acknowledged after it was committed; its slot is free at once', async (t) => {
    const { at, worker } = await holding({ concurrency_limit: 1 })
    let commit = () => {}
    at.on['queue.report'] = () => new Promise((resolve) => { commit = () => resolve({ outcome: 'accepted' }) })
    t.equal(at.listening.size, 0)
    t.same(await worker.say({ ...report, result: { message_id: 'm-22' } }), [])
    t.equal(at.listening.size, 1)
    commit()
    await settle()
    t.same(worker.frames, [{ type: 'job.report.ack', message_id: 'm', job_id: job.id, duplicate: false }])
    t.match(at.named('queue.report'), [{ id: '1.default', input: { ...lease, status: 'completed', result: { message_id: 'm-22' } } }])
    t.equal(at.listening.size, 1)
  })
  t.test('sent again is acknowledged as a duplicate, under a command id of its own', async (t) => {
    const { at, worker } = await holding()
    await worker.say(report)
    at.on['queue.report'] = () => ({ outcome: 'duplicate' })
    t.match(await worker.say(report), [{ type: 'job.report.ack', duplicate: true }])
    const [first, second] = at.named('queue.report')
    t.not(first?.command_id, second?.command_id)
  })
  t.test('with a lost lease, an unknown job or a foreign token is acknowledged and lease_lost is said with the same message id', async (t) => {
    const { at, worker } = await holding()
    at.on['queue.report'] = () => ({ outcome: 'lease_lost' })
    for (const frame of [report, { ...report, job_id: 'job_41' }, { ...report, lease_token: 'x' }]) {
      t.match(await worker.say(frame), [{ type: 'job.report.ack', message_id: 'm', job_id: frame.job_id, duplicate: false }, { type: 'error', message_id: 'm', error: { code: 'lease_lost' } }])
    }
  })
  t.test('of a job that another gateway handed out is passed on like any other', async (t) => {
    const at = scene()
    const worker = await at.worker()
    t.match(await worker.say(report), [{ type: 'job.report.ack', message_id: 'm' }])
    t.match(at.named('queue.report'), [{ id: '1.default' }])
  })
  t.test('of a failure carries its error and never a result', async (t) => {
    const { at, worker } = await holding()
    await worker.say({ ...report, status: 'cancelled', error_type: 'Cancelled', error_message: 'stop', result: { a: 1 } })
    t.same(at.named('queue.report')[0]?.input, { ...lease, status: 'cancelled', error_type: 'Cancelled', error_message: 'stop' })
  })
  t.test('is acknowledged whatever else it carries: what is misshapen is left out, and fails the job where nobody can say whether it is done', async (t) => {
    const invalid = { status: 'failed', error_type: 'ResultInvalid', error_message: /^the report is not understood: / }
    for (const [odd, taken] of [
      [{ error_message: 5, error_type: {}, result: { a: 1 } }, { status: 'completed', result: { a: 1 } }],
      [{ status: 'failed', result: 'text', error_type: 'Error' }, { status: 'failed', error_type: 'Error' }],
      [{ result: 'text' }, invalid], [{ status: 'completed', result: [1] }, invalid], [{ status: 'done', result: {} }, invalid], [{ status: 5 }, invalid],
    ] as const) {
      const { at, worker } = await holding()
      t.match(await worker.say({ ...report, ...odd }), [{ type: 'job.report.ack', message_id: 'm', job_id: job.id, duplicate: false }])
      const [sent] = at.named('queue.report')
      t.match(sent?.input, { ...lease, ...taken })
      if (!('result' in taken)) t.notHas(sent?.input, { result: Object })
    }
    const { worker } = await holding()
    const [ack] = await worker.say({ ...report, message_id: 'x'.repeat(129) })
    t.strictSame(ack, { type: 'job.report.ack', job_id: job.id, duplicate: false })
    t.match(await worker.say({ ...report, lease_token: 7 }), [{ type: 'job.report.ack', message_id: 'm' }, { type: 'error', error: { code: 'lease_lost' } }])
    t.match(await worker.say({ ...report, job_id: 7 }), [{ type: 'error', message_id: 'm', error: { code: 'bad_frame' } }], 'a report of nothing')
  })
  t.test('with a result above 1 MiB is acknowledged and fails the job', async (t) => {
    const { at, worker } = await holding()
    t.match(await worker.say({ ...report, result: { text: 'x'.repeat(sizes.result) } }), [{ type: 'job.report.ack', duplicate: false }])
    t.match(at.named('queue.report')[0]?.input, { status: 'failed', error_type: 'ResultTooLarge' })
  })
  t.test('that nobody could decide is tried again under the same command id, not acknowledged before, and a repeat of it waits too', async (t) => {
    const { at, worker } = await holding()
    at.on['queue.report'] = () => refuse('service_unavailable')
    t.same(await worker.say(report), [])
    await worker.say({ ...report, message_id: 'n' })
    await at.clock.advance(8000)
    t.equal(at.named('queue.report').length, 4)
    at.on['queue.report'] = () => ({ outcome: 'accepted' })
    await at.clock.advance(10_000)
    t.match(worker.of('job.report.ack'), [{ message_id: 'm', duplicate: false }, { message_id: 'n', duplicate: true }])
    t.equal(new Set(at.named('queue.report').map(({ command_id }) => command_id)).size, 1)
  })
  t.test('goes on being tried after the connection ended, until its lease has run out', async (t) => {
    const { at, worker } = await holding()
    at.on['queue.report'] = () => refuse('service_unavailable')
    await worker.say(report)
    worker.connection.ended()
    await at.clock.advance(30_000)
    const tried = at.named('queue.report').length
    t.ok(tried > 3)
    await at.clock.advance(120_000)
    t.ok(at.named('queue.report').length < tried + 6)
    t.equal(at.clock.waiting, 1)
  })
})
