/**
 * The log lines of jobs over the real stack: stored under a current lease only, read with filters
 * in both orders, followed until the run ends, and deleted with their project.
 */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { Worker } from '../../../client/worker.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { names } from '../../../protocol/subjects.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'
import { ask, faultOf, type Received, start } from '../support/sockets.ts'

const s = await service({ BATON_LOGS_JOB_RATE: '10' })
const nats = await connectNats({
  access: s.server.access,
  name: 'logs test',
  log: silentLog,
  role: 'test',
})
t.teardown(async () => {
  await nats.close()
  await s.stop()
})

interface Line {
  readonly sequence: number
  readonly level: string
  readonly text: string
}
const linesOf = async (run: Received, query: Record<string, unknown> = {}): Promise<Line[]> =>
  (await s.ok('run.logs', { id: run['id'], limit: 200, ...query }))['items'] as unknown as Line[]
const textsOf = async (run: Received, query: Record<string, unknown> = {}): Promise<string[]> =>
  (await linesOf(run, query)).map(({ text }) => text)
/** Waits until the log of a run satisfies a condition. */
async function until(run: Received, found: (texts: string[]) => boolean): Promise<string[]> {
  for (;;) {
    const texts = await textsOf(run)
    if (found(texts)) return texts
    await setImmediate()
  }
}
const frame = (job: Received, ...lines: (string | Record<string, unknown>)[]) => ({
  type: 'job.log',
  job_id: job['id'],
  lease_token: job['lease_token'],
  lines: lines.map((line) => (typeof line === 'string' ? { text: line } : line)),
})

t.test('the frame is announced to a worker that names it', async (t) => {
  const worker = await s.worker({ type: null })
  const register = { type: 'worker.register', worker_instance_id: 'modern' }
  const frames = ['job.log', 'job.dance']
  t.strictSame((await ask(worker, { ...register, frames }, 'worker.registered'))['frames'], [
    'job.log',
  ])
  worker.close()
  const old = await s.worker({ type: null })
  const answer = await ask(
    old,
    { type: 'worker.register', worker_instance_id: 'old' },
    'worker.registered',
  )
  t.notOk('frames' in answer)
  old.close()
})

t.test('lines are stored in order, filtered, paged in both orders, and masked', async (t) => {
  const worker = await s.worker({ action_names: ['talk'] })
  const run = await start(s, 'talk')
  const job = await worker.job()
  worker.send(
    frame(
      job,
      { text: 'one', level: 'debug', at: '2026-01-02T03:04:05.678Z' },
      { text: `key ${s.key} and ${job['lease_token']}`, fields: { key: s.key, n: 1 } },
    ),
  )
  worker.send(
    frame(job, { text: 'x'.repeat(9000), level: 'warn' }, { text: 'Four', level: 'error' }),
  )
  await worker.report(job)
  await until(run, (texts) => texts.length === 4)
  const lines = await linesOf(run)
  t.match(lines[0], {
    at: '2026-01-02T03:04:05.678Z',
    level: 'debug',
    text: 'one',
    step_key: 'do',
    job_id: job['id'],
    attempt: 1,
  })
  t.match(lines[1], {
    level: 'info',
    text: 'key [redacted] and [redacted]',
    fields: { key: '[redacted]', n: 1 },
  })
  t.match(lines[2], { truncated: true, text: /^x{8189}…$/ })
  const positions = lines.map(({ sequence }) => sequence)
  t.strictSame(
    positions,
    [...positions].sort((a, b) => a - b),
  )
  t.strictSame(await textsOf(run, { level: 'error' }), ['Four'])
  t.strictSame(await textsOf(run, { contains: 'fOUR' }), ['Four'])
  t.strictSame(await textsOf(run, { step_key: 'other' }), [])
  t.equal((await textsOf(run, { job_id: job['id'], step_key: 'do' })).length, 4)
  for (const order of ['asc', 'desc']) {
    const paged: Line[] = []
    let [after, more]: [number | undefined, boolean] = [undefined, true]
    while (more) {
      const page = await s.ok('run.logs', {
        id: run['id'],
        limit: 1,
        order,
        ...(after !== undefined && { after }),
      })
      paged.push(...(page['items'] as unknown as Line[]))
      after = page['next_after']
      more = Boolean(page['has_more'])
    }
    t.strictSame(paged, order === 'asc' ? lines : [...lines].reverse(), order)
  }
  await s.refused('run.logs', { id: 'run_01JZ3M0Q0R8XG4V2T6Y9ABCDEF' }, 404, 'not_found')
  worker.close()
})

t.test('a stream sends what is stored, then new lines, and ends with the run', async (t) => {
  const worker = await s.worker({ action_names: ['sing'] })
  const run = await start(s, 'sing')
  const job = await worker.job()
  worker.send(frame(job, 'first'))
  await until(run, (texts) => texts.length === 1)
  const followed = s.follow('run.logs', { id: run['id'] }, ({ data }) => {
    if (data['text'] === 'first') worker.send(frame(job, 'second', 'third'))
    if (data['text'] === 'third') void worker.report(job)
    return false
  })
  const loud = s.follow('run.logs', { id: run['id'], level: 'error' }, () => false)
  const at = { project: 'default', topic: 'logs', target: run['id'] }
  const together = s.follow(
    'stream.follow',
    {
      subscriptions: [
        { ...at, id: 'all' },
        { ...at, id: 'some', filter: { contains: 'SECOND' } },
      ],
    },
    () => false,
  )
  const frames = await followed
  t.strictSame(
    frames.map(({ data }) => data['text']),
    ['first', 'second', 'third'],
  )
  t.strictSame(
    frames.map(({ id }) => Number(id)),
    (await linesOf(run)).map(({ sequence }) => sequence),
  )
  t.strictSame(await loud, [], 'the filters apply to the stream')
  const followedBoth = (await together).map(({ data }) => data)
  const of = (id: string) => followedBoth.filter(({ subscription }) => subscription === id)
  t.match(of('all'), [
    { event: 'subscription.started', cursor: 0 },
    ...frames.map(({ id, data }) => ({ event: 'log.line', cursor: Number(id), data })),
    { event: 'subscription.ended', data: { reason: 'completed' } },
  ])
  t.match(of('some'), [
    { event: 'subscription.started' },
    { event: 'log.line', data: { text: 'second' } },
    { event: 'subscription.ended' },
  ])
  worker.close()
})

t.test('a superseded lease adds nothing', async (t) => {
  const [first, second] = [
    await s.worker({ action_names: ['lose'] }),
    await s.worker({ action_names: ['lose'], worker_instance_id: 'second' }),
  ]
  const run = await start(s, 'lose', { attempts: 3 })
  const before = await first.job()
  first.send(frame(before, 'mine'))
  await until(run, (texts) => texts.length === 1)
  await first.report(before, { status: 'failed', error_type: 'Lost', error_message: 'x' })
  const after = await second.job()
  t.match(await faultOf(first, frame(before, 'late')), 'lease_lost')
  t.match(await faultOf(first, { ...frame(before, 'forged'), lease_token: 'lt_x' }), 'lease_lost')
  t.match(await faultOf(first, frame(after, 'stolen')), 'lease_lost', 'a lease of another session')
  second.send(frame(after, 'second attempt'))
  await second.report(after)
  t.strictSame(await until(run, (texts) => texts.length > 1), ['mine', 'second attempt'])
  first.close()
  second.close()
})

t.test('lines above the rate are dropped, and a line reports how many', async (t) => {
  const worker = await s.worker({ action_names: ['flood'] })
  const run = await start(s, 'flood')
  const job = await worker.job()
  worker.send(frame(job, ...Array.from({ length: 150 }, (_, index) => `line ${index}`)))
  await worker.report(job)
  const texts = await until(run, (found) => found.some((text) => text.endsWith('dropped.')))
  t.strictSame(texts.slice(0, 2), ['line 0', 'line 1'])
  t.match(await linesOf(run, { level: 'warn' }), [
    { text: '50 lines were dropped.', fields: { dropped: 50 } },
  ])
  t.equal(texts.length, 101)
  worker.close()
})

t.test('a run without lines has an empty log, and invalid questions are refused', async (t) => {
  const run = await start(s, 'nobody')
  t.strictSame(await s.ok('run.logs', { id: run['id'] }), {
    items: [],
    has_more: false,
    next_after: 0,
  })
  await s.refused('run.logs', { id: run['id'], level: 'loud' }, 400, 'bad_request')
})

t.test('the worker library writes lines, and baton logs shows and follows them', async (t) => {
  let finish = (): void => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const worker = new Worker({
    url: s.url,
    key: s.key,
    actions: {
      write: async (_, { log }) => {
        log.info('begins \u001b[31mred', { count: 2 })
        log.debug('detail')
        await finished
        log.error('ends')
      },
    },
  })
  await worker.start()
  const run = await start(s, 'write')
  const baton = commandRunner(s, t.testdir())
  await until(run, (texts) => texts.length === 2)
  const { out } = await baton(['logs', String(run['id']), '--level', 'info'])
  t.match(out, /^\d\d:\d\d:\d\d\.\d{3} {2}info {3}do {12}begins red {2}\{"count":2\}$/)
  const following = baton(['logs', String(run['id']), '--follow', '--step', 'do', '--tail', '2'])
  finish()
  const followed = await following
  // The follower may begin before or after the last line is written. In both cases, it prints the
  // same last two lines.
  t.match(followed.out.split('\n').slice(-2), [/debug .* detail$/, /error .* ends$/])
  const json = await baton(['logs', String(run['id']), '--json', '--contains', 'ENDS'])
  t.match(JSON.parse(json.out), { text: 'ends', level: 'error', attempt: 1 })
  await worker.drain()
})

t.test(
  'lines of a worker at another gateway are followed, and deleted with the project',
  async (t) => {
    const other = await s.add({ BATON_ROLES: 'gateway' })
    const project = String(
      (await s.ok('project.create', { name: 'Gone', handle: 'gone' }))['handle'],
    )
    const worker = await s.worker({ action_names: ['far'] }, { url: String(other.url), project })
    const run = await s.ok('run.start', {
      project,
      spec: { steps: [{ id: 'do', kind: 'action', config: { action_name: 'far' } }] },
    })
    const job = await worker.job()
    const followed = s.follow('run.logs', { project, id: run['id'] }, ({ data }) => {
      if (data['text'] === 'one') {
        worker.send(frame(job, 'two'))
        void worker.report(job)
      }
      return false
    })
    worker.send(frame(job, 'one'))
    t.strictSame(
      (await followed).map(({ data }) => data['text']),
      ['one', 'two'],
    )
    worker.close()
    const { state } = await nats.manager.streams.info(names.logs)
    t.ok(state.messages > 0)
    await s.ok('project.delete', { project })
    const id = String(run['id'])
    for (let left = true; left; ) {
      const { state } = await nats.manager.streams.info(names.logs, { subjects_filter: '>' })
      left = Object.keys(state.subjects ?? {}).some((subject) => subject.endsWith(id))
    }
  },
)
