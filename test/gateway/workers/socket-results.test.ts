/** Reports whose results cannot be stored. */
import t from 'tap'
import type { LogStore } from '../../../gateway/logs/ports.ts'
import type { World } from '../../../gateway/ports.ts'
import { deferred } from '../../client/worker/stand.ts'
import { hand, header, leased, scene, sessionOf, settle } from './workers.ts'

const { id, lease_token } = leased(header(1))
/** Returns the input of the command that a report of a held job sends to its queue. */
async function reported(more: object) {
  const at = scene()
  const worker = await at.worker()
  await worker.say({ type: 'jobs.claim', available_slots: 1 })
  await hand(at, [header(1)])
  await at.clock.advance(5)
  await worker.say({ type: 'job.report', job_id: id, lease_token, ...more })
  return at.named('queue.report')[0]?.input as { readonly final?: true }
}

t.test('a job whose result cannot be stored fails without another attempt', async (t) => {
  const failed = (error_type: string) => ({ status: 'failed', error_type, final: true })
  t.match(await reported({ result: { text: 'x'.repeat(1_048_576) } }), failed('ResultTooLarge'))
  const invalid = JSON.parse('{"a": {"__proto__": {}}}') as object
  t.match(await reported({ result: invalid }), failed('ResultInvalid'))
  t.match(await reported({ result: 'text' }), failed('ResultInvalid'), 'a malformed report')
  const library = { status: 'failed', error_type: 'ResultTooLarge' }
  t.match(await reported(library), failed('ResultTooLarge'), 'a report by a worker library')
})

t.test('a failed job gets its other attempts', async (t) => {
  const input = await reported({ status: 'failed', error_type: 'Error', final: true })
  t.strictSame(input, { job_id: id, lease_token, status: 'failed', error_type: 'Error' })
  const cancelled = await reported({ status: 'cancelled', error_type: 'ResultTooLarge' })
  t.notOk(cancelled.final)
})

t.test('a report waits until the lease of the lines before it is confirmed', async (t) => {
  let answer = deferred<unknown>()
  const texts: string[] = []
  const at = scene(
    {},
    {
      ask: (async (_to: unknown, name: string) =>
        name === 'lease' ? answer.promise : true) as World['ask'],
      logs: {
        async append(_project, _target, { lines }) {
          texts.push(...lines.map((line) => line.text))
        },
      } as LogStore,
    },
  )
  const facts = () => ({
    job_id: id,
    attempt: 1,
    worker_session_id: sessionOf(at),
    worker_instance_id: 'box',
    run_id: 'run_1',
  })
  const worker = await at.worker()
  await worker.say({ type: 'jobs.claim', available_slots: 1 })
  await hand(at, [header(1)])
  await at.clock.advance(5)
  const print = (text: string) =>
    worker.say({ type: 'job.log', job_id: id, lease_token, lines: [{ level: 'info', text }] })
  await print('first')
  answer.resolve(facts())
  await settle()
  t.strictSame(texts, ['first'])

  answer = deferred()
  await at.clock.advance(at.world.settings.timing.cadence * 1000)
  await print('last')
  await worker.say({ type: 'job.report', job_id: id, lease_token, result: {} })
  t.strictSame(at.named('queue.report'), [], 'the queue could decide the report first')
  answer.resolve(facts())
  await settle()
  t.equal(at.named('queue.report').length, 1)
  t.strictSame(texts, ['first', 'last'])
  t.equal(worker.of('job.report.ack').length, 1)
})
