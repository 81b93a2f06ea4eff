/**
 * The writers of log lines: confirmation of the lease, order, limits, and failures of the store.
 */
import t from 'tap'
import { type LogLease, openLogWriters } from '../../../gateway/logs/writers.ts'
import { refuse } from '../../../protocol/errors.ts'
import { type LogBatch, logLimits } from '../../../protocol/jobs/logs.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { deferred, settled } from '../../client/worker/stand.ts'
import { fakeWorld } from '../../support/fake-world.ts'

const lease: LogLease = {
  project: 'prj_1',
  queue: { project: 'prj_1', kind: 'queue', id: '0.default' },
  job_id: 'job_1',
  lease_token: 'lt_1.default',
  session: 'wks_1',
}
const facts = {
  job_id: 'job_1',
  attempt: 2,
  worker_session_id: 'wks_1',
  worker_instance_id: 'box',
  run_id: 'run_1',
  step_key: 'do',
}
const text = (...texts: string[]) => texts.map((one) => ({ text: one }))

/** Creates writers with a manual clock, with a queue and a store that the test controls. */
function scene(limits = { rate: 1000, bytes: 1_000_000 }) {
  const at = {
    now: 1_900_000_000_000,
    offset: 0,
    asked: 0,
    lost: 0,
    answer: facts as unknown,
    stored: [] as { target: string; batch: LogBatch }[],
    /** Called for each batch before it is stored. */
    store: (): Promise<void> => Promise.resolve(),
  }
  const writers = openLogWriters(
    fakeWorld({
      settings: { key_prefix: 'bat', timing: defaultTiming, job_logs: limits },
      now: () => at.now + at.offset,
      monotonic: () => at.now,
      later: () => () => {},
      log: { debug() {} },
      ask: async () => {
        at.asked++
        return at.answer
      },
      logs: {
        append: async (_: string, target: string, batch: LogBatch) => {
          await at.store()
          at.stored.push({ target, batch })
        },
      },
    }),
  )
  const write = (...texts: string[]) => writers.write(lease, text(...texts), () => void at.lost++)
  const texts = () => at.stored.flatMap(({ batch }) => batch.lines.map((line) => line.text))
  return { at, writers, write, texts }
}

t.test('the lease is confirmed once per heartbeat interval, also for earlier lines', async (t) => {
  const { at, write, texts } = scene()
  write('a', 'b')
  write('c')
  await settled()
  t.match(at.stored[0], {
    target: 'run_1',
    batch: { job_id: 'job_1', attempt: 2, step_key: 'do', worker_instance_id: 'box' },
  })
  t.strictSame(texts(), ['a', 'b', 'c'])
  t.equal(at.asked, 1)
  at.now += defaultTiming.cadence * 1000 - 1
  write('d')
  await settled()
  t.equal(at.asked, 1)
  at.now += 1
  at.answer = null
  write('e')
  await settled()
  t.equal(at.asked, 2)
  t.equal(at.lost, 1)
  t.strictSame(texts(), ['a', 'b', 'c', 'd'], 'a line after the loss is discarded')
})

for (const [what, answer, lost] of [
  ['there is no such lease', null, 1],
  ['the lease belongs to another session', { ...facts, worker_session_id: 'wks_2' }, 1],
  ['the job belongs to no run', { ...facts, run_id: undefined }, 0],
  ['the queue does not answer', refuse('service_unavailable'), 0],
] as const)
  t.test(`nothing is stored when ${what}`, async (t) => {
    const { at, write } = scene()
    at.answer = answer
    write('a')
    await settled()
    t.strictSame(at.stored, [])
    t.equal(at.lost, lost)
  })

t.test('lines that arrive while a batch is stored form the next batch, in order', async (t) => {
  const { at, write, texts } = scene()
  const gate = deferred<void>()
  at.store = () => gate.promise
  write('0')
  await settled()
  for (let n = 1; n < 20; n++) write(String(n))
  t.strictSame(at.stored, [])
  gate.resolve()
  await settled()
  t.strictSame(
    texts(),
    Array.from({ length: 20 }, (_, n) => String(n)),
  )
  t.equal(at.stored.length, 2)
})

t.test('lines above the rate are dropped until there is credit, and reported', async (t) => {
  const { at, write, texts } = scene({ rate: 1, bytes: 1_000_000 })
  write(...Array.from({ length: 13 }, (_, n) => String(n)))
  at.now += 1000
  write('later')
  await settled()
  t.strictSame(texts().slice(9), ['9', '3 lines were dropped.', 'later'])
})

t.test('lines are stored after the system clock was set back', async (t) => {
  const { at, write, texts } = scene()
  at.offset = 3_600_000
  write('before')
  at.offset = 0
  write('after')
  await settled()
  t.strictSame(texts(), ['before', 'after'])
})

t.test('a full log reports the limit at once, and the dropped lines at the end', async (t) => {
  const { write, writers, texts } = scene({ rate: 1000, bytes: 200 })
  write('a', 'x'.repeat(300), 'b')
  await settled()
  t.strictSame(texts(), [
    'a',
    'The log of this job has reached its maximum size. Further lines are dropped.',
  ])
  void writers.end('job_1', 'other token')
  await settled()
  t.equal(texts().length, 2)
  void writers.end('job_1', lease.lease_token)
  await settled()
  t.equal(texts().at(-1), '2 lines were dropped.')
})

t.test('a store that fails or is slow costs lines, never unbounded memory', async (t) => {
  const { at, write, writers, texts } = scene({ rate: 10_000, bytes: 100_000_000 })
  at.store = () => Promise.reject(new Error('no answer'))
  write('lost')
  await settled()
  const gate = deferred<void>()
  at.store = () => gate.promise
  write('first')
  await settled()
  const line = 'x'.repeat(8000)
  for (let n = 0; n < 300; n++) write(line)
  gate.resolve()
  await writers.stop()
  const kept = texts().filter((one) => one === line).length
  t.ok(kept * line.length <= logLimits.waiting && kept > 100, `${kept} lines`)
  t.strictSame(texts().slice(0, 2), ['1 line was dropped.', 'first'])
  t.equal(texts().at(-1), `${300 - kept} lines were dropped.`)
  t.ok(at.stored.every(({ batch }) => JSON.stringify(batch).length < logLimits.batch + 1000))
})

/** Returns a scene in which the line `b` waits until `gate` ends the storing of the line `a`. */
async function sceneOfWaitingLine() {
  const made = scene()
  const gate = deferred<void>()
  made.at.store = () => gate.promise
  made.write('a')
  await settled()
  made.write('b')
  return { ...made, gate }
}

t.test('lines before the end need no further confirmation after it', async (t) => {
  const { at, writers, texts, gate } = await sceneOfWaitingLine()
  t.equal(writers.end('job_1', lease.lease_token), undefined, 'the confirmation is recent')
  at.now += defaultTiming.cadence * 1000
  at.answer = null
  gate.resolve()
  await settled()
  t.strictSame(texts(), ['a', 'b'])
  t.equal(at.lost, 0)
})

t.test('the end reports when an outdated lease has been confirmed', async (t) => {
  const { at, write, writers, texts, gate } = await sceneOfWaitingLine()
  at.now += defaultTiming.cadence * 1000
  await writers.end('job_1', lease.lease_token)
  t.equal(at.asked, 2)
  at.answer = null
  gate.resolve()
  await settled()
  t.strictSame(texts(), ['a', 'b'])
  write('c')
  await settled()
  t.strictSame(texts(), ['a', 'b'], 'a line after the end needs a current lease')
})
