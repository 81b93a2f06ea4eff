/** The log lines that handlers write: levels, batches, order, limits, and the captured console. */
import t from 'tap'
import { captureConsole } from '../../../client/worker/console.ts'
import type { JobLog } from '../../../client/worker/logs.ts'
import type { WorkerOptions } from '../../../client/worker/options.ts'
import { deferred, jobOf, settled, stand } from './stand.ts'

/** Starts a worker with one running job. Returns both, and the log of the job. */
async function running(options: Partial<WorkerOptions> = {}, frames?: string[]) {
  const logs: JobLog[] = []
  const done = deferred<void>()
  const at = stand({
    actions: {
      talk: (_, { log }) => {
        logs.push(log)
        return done.promise
      },
    },
    ...options,
  })
  void at.worker.start()
  at.peer().accept('wst_1', 20, frames)
  const job = jobOf('talk')
  await at.peer().give(job)
  const texts = () =>
    at
      .peer()
      .all('job.log')
      .map(({ lines }) => lines.map(({ text }) => text))
  return { ...at, job, log: logs[0] as JobLog, done, texts }
}

t.test('lines are batched for 100 ms, with level and fields, and the frame is named', async (t) => {
  const { log, peer, clock, job, lines, texts } = await running({}, ['job.log'])
  t.match(peer().last('worker.register'), { frames: ['job.log'] })
  log('plain')
  log.debug('one')
  log.error('two', { count: 2, secret: undefined })
  await clock.pass(99)
  t.strictSame(texts(), [])
  await clock.pass(1)
  t.match(peer().last('job.log'), {
    job_id: job.id,
    lease_token: job.lease_token,
    lines: [
      { level: 'info', text: 'plain', at: /^\d{4}-.*Z$/ },
      { level: 'debug', text: 'one' },
      { level: 'error', text: 'two', fields: { count: 2 } },
    ],
  })
  t.strictSame(lines, [`${job.id}: plain`], 'only a plain line is in the log of the worker')
})

t.test('a large batch is sent at once, and the rest before the report', async (t) => {
  const { log, peer, done, texts } = await running({}, ['job.log'])
  for (let n = 0; n < 5; n++) log.info('x'.repeat(8000))
  t.equal(peer().all('job.log').length, 1)
  log.info('last')
  done.resolve()
  await settled()
  t.strictSame(texts().at(-1), ['last'])
  const types = peer().sent.map(({ type }) => type)
  t.ok(types.lastIndexOf('job.log') < types.indexOf('job.report'))
  log.info('after the report')
  t.notMatch(JSON.stringify(texts()), 'after the report')
})

t.test('nothing is sent to a service that does not announce the frame', async (t) => {
  const { log, clock, peer, done } = await running()
  log.info('unheard')
  await clock.pass(1000)
  done.resolve()
  await settled()
  t.strictSame(peer().all('job.log'), [])
  t.match(peer().last('job.report'), { status: 'completed' })
})

t.test('lines survive a lost connection, and are sent before the report', async (t) => {
  const { log, peer, clock, done, texts } = await running({}, ['job.log'])
  peer().events.closed(1006, 'lost')
  log.info('while away')
  done.resolve()
  await clock.pass(2000)
  peer().accept('wst_1', 20, ['job.log'])
  t.strictSame(texts(), [['while away']])
  const types = peer().sent.map(({ type }) => type)
  t.ok(types.indexOf('job.log') < types.indexOf('job.report'))
})

t.test('lines beyond 1 MiB per interval are dropped, and a line reports how many', async (t) => {
  const { log, clock, texts } = await running({}, ['job.log'])
  for (let n = 0; n < 200; n++) log.info(`${n} ${'x'.repeat(8000)}`)
  await clock.pass(100)
  const all = texts().flat()
  const kept = all.length - 1
  t.ok(kept > 100 && kept < 200, `${kept} lines`)
  t.equal(all.at(-1), `The worker dropped ${200 - kept} lines.`)
  log.info('next interval')
  await clock.pass(100)
  t.equal(texts().flat().at(-1), 'next interval')
})

t.test('credentials are removed from texts and fields, and fields must be JSON', async (t) => {
  const { log, clock, peer } = await running(
    { redact: (text) => text.replaceAll('hunter2', '***') },
    ['job.log'],
  )
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  log.info('is hunter2', { key: 'hunter2' })
  log.info('cyclic', cyclic)
  await clock.pass(100)
  t.match(peer().last('job.log').lines, [
    { text: 'is ***', fields: { key: '***' } },
    { text: 'cyclic', fields: { invalid_fields: /circular/ } },
  ])
})

t.test('values that are not texts, and fields that are not objects, are described', async (t) => {
  const { log, clock, peer, lines, job } = await running({}, ['job.log'])
  const any = log as unknown as Record<string, (...values: unknown[]) => void>
  any['info']?.(undefined)
  any['warn']?.(new RangeError('no room'), null)
  any['error']?.({ a: 1n }, ['x'])
  ;(log as (line: unknown) => void)(Symbol('s'))
  await clock.pass(100)
  t.match(peer().last('job.log').lines, [
    { text: 'undefined', fields: undefined },
    { text: /^RangeError: no room/, fields: undefined },
    { text: '{ a: 1n }', fields: { value: ['x'] } },
    { text: 'Symbol(s)' },
  ])
  t.strictSame(lines, [`${job.id}: Symbol(s)`])
})

t.test('the console is captured per job, and restored at the end', async (t) => {
  const { info } = console
  const printed: unknown[][] = []
  console.info = (...values) => void printed.push(values)
  const replaced = console.info
  const capture = captureConsole()
  const [first, second]: [string[], string[]] = [[], []]
  const gate = deferred<void>()
  const write = (lines: string[]) => (level: string, text: string) =>
    void lines.push(`${level} ${text}`)
  const late = capture.run(write(first), async () => {
    await gate.promise
    console.info('%s of %d', 'first', 2)
  })
  capture.run(write(second), () => console.info('second'))
  console.info('neither')
  gate.resolve()
  await late
  t.strictSame(first, ['info first of 2'])
  t.strictSame(second, ['info second'])
  t.equal(printed.length, 3, 'the console still prints')
  capture.stop()
  t.equal(console.info, replaced)
  console.info = info
})

t.test('a worker captures the console of its handlers', async (t) => {
  const done = deferred<void>()
  const { debug } = console
  console.debug = () => {}
  const quiet = console.debug
  const { worker, peer, clock } = stand({
    captureConsole: true,
    actions: {
      talk: async () => {
        await done.promise
        console.debug('from the handler')
        await new Promise(() => {})
      },
    },
  })
  void worker.start()
  peer().accept('wst_1', 20, ['job.log'])
  await peer().give(jobOf('talk'))
  done.resolve()
  await clock.pass(100)
  t.match(peer().last('job.log').lines, [{ level: 'debug', text: 'from the handler' }])
  const ended = worker.stop()
  await clock.pass(6000)
  await ended
  t.equal(console.debug, quiet)
  console.debug = debug
})
