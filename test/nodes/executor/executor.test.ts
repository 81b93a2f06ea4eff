/** An executor with scripted queue replies and a manual clock. */
import t from 'tap'
import { uniqueTexts } from '../../../gateway/http/hex.ts'
import type { MaybePromise } from '../../../gateway/maybe-promise.ts'
import { outcomeOf } from '../../../nodes/executor/answer.ts'
import { startExecutor } from '../../../nodes/executor/executor.ts'
import { type Handler, NOT_OURS, type Outcome } from '../../../nodes/executor/handler.ts'
import { refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { leaseToken } from '../../../protocol/jobs/lease-token.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import type { Offer, OfferReply } from '../../../protocol/workers/messages.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { fakeWorld } from '../../support/fake-world.ts'

const jobId = (n: number) => makeId('job', n, new Uint8Array(9).fill(n), n)
const header = (n: number): JobHeader => ({
  id: jobId(n),
  kind: 'action_execution',
  origin: 'loop_action_step',
  executor_kind: 'customer_worker',
  action_name: 'pay',
  priority: 0,
  fairness_key: '',
  enqueued_at: 0,
  max_attempts: 1,
  max_losses: 1,
})
const turn = () => new Promise<void>((done) => setImmediate(done))

/** Creates an executor and its ports. Tests decide when a job ends. */
function stage({
  limit = 4,
  takes = () => ({}),
  graceMs,
}: {
  limit?: number
  graceMs?: number
  takes?: Handler['takes']
} = {}) {
  let now = 0
  let fresh = true
  const timers = new Set<{ at: number; run: () => void }>()
  const commands: { name: string; input: Record<string, unknown> }[] = []
  const demands: string[] = []
  const on: Record<string, (input: Record<string, unknown>) => unknown> = {}
  const working = new Map<
    string,
    { finish: (outcome: Outcome | typeof NOT_OURS) => void; signal: AbortSignal }
  >()
  let listener: ((offer: Offer) => MaybePromise<OfferReply | undefined>) | undefined
  const world = fakeWorld({
    now: () => now,
    monotonic: () => now,
    fresh: () => fresh,
    demand: (project: string) => void demands.push(project),
    settings: { shards: 4, timing: defaultTiming },
    id: () => 'wst_1',
    random: (bytes: number) => new Uint8Array(bytes),
    newCommandId: uniqueTexts((bytes) => new Uint8Array(bytes)),
    later: (ms: number, run: () => void) => {
      const timer = { at: now + ms, run }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    command: async ({ name, input }: { name: string; input: Record<string, unknown> }) => {
      commands.push({ name, input })
      return (on[name]?.(input) ?? {
        reply: name === 'queue.heartbeat' ? { alive: true } : { outcome: 'accepted' },
      }) as never
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  })
  const handler: Handler = {
    takes,
    ...(graceMs !== undefined && { graceMs }),
    perform: ({ job, signal }) => new Promise((finish) => working.set(job.id, { finish, signal })),
  }
  const executor = startExecutor({
    world,
    mailbox: 'x-n1',
    handlers: { action_execution: handler },
    limit,
    listen: (heard) => {
      listener = heard
      return () => {
        listener = undefined
      }
    },
  })
  return {
    executor,
    commands,
    demands,
    on,
    working,
    listening: () => listener !== undefined,
    setFresh: (value: boolean) => {
      fresh = value
    },
    offer: async (numbers: number[], project = 'prj_1') =>
      listener?.({ project, queue: 'default', jobs: numbers.map(header) }),
    assign: async (n: number, project = 'prj_1', secret = 'a') => {
      const job = {
        ...header(n),
        queue: 'default',
        spec: {},
        lease_token: leaseToken(secret, 'default'),
        claim_attempt: 1,
        lease_duration_seconds: 60,
        heartbeat_cadence_seconds: 20,
      } as unknown as ClaimedJob
      const told = executor.receive({ type: 'assign', project, session: 'wst_1', job })
      await turn()
      return told.ok
    },
    pass: async (ms: number) => {
      const until = now + ms
      for (
        let next = [...timers].sort((a, b) => a.at - b.at)[0];
        next && next.at <= until;
        next = [...timers].sort((a, b) => a.at - b.at)[0]
      ) {
        now = Math.max(now, next.at)
        timers.delete(next)
        next.run()
        await turn()
      }
      now = until
      await turn()
    },
    finish: async (
      n: number,
      outcome: Outcome | typeof NOT_OURS = { status: 'completed', result: {} },
    ) => {
      working.get(jobId(n))?.finish(outcome)
      await turn()
    },
    reports: () => commands.filter(({ name }) => name === 'queue.report').map(({ input }) => input),
  }
}

t.test('an executor fills its free slots, but never all from one project', async (t) => {
  const it = stage({ limit: 4, takes: () => ({ losses: 3 }) })
  const taking = await it.offer([1, 2, 3, 4])
  t.match(taking, {
    gateway: 'x-n1',
    takes: [{ job_id: jobId(1), session: 'wst_1', served: true, losses: 3 }, {}, {}],
  })
  t.equal(taking?.takes.length, 3, 'three quarters')
  t.match(await it.offer([5]), { takes: [], busy: true })
  t.equal((await it.offer([6], 'prj_2'))?.takes.length, 1, 'the rest is for others')
  t.notOk(it.listening(), 'a full executor is not asked')
  for (const n of [1, 2, 3]) t.ok(await it.assign(n))
  await it.finish(1)
  t.ok(it.listening())
  t.strictSame(it.demands, ['prj_1'], 'demand is announced to the refused project')
  await it.pass(5000)
  t.equal(
    (await it.offer([7, 8], 'prj_2'))?.takes.length,
    2,
    'a promised job that never arrives frees its slot',
  )
})

t.test('jobs for workers are not taken', async (t) => {
  const it = stage({ takes: (_, { id }) => (id === jobId(2) ? {} : undefined) })
  t.equal(await it.offer([1, 3]), undefined)
  t.match(await it.offer([1, 2]), { takes: [{ job_id: jobId(2) }] })
  const unknown = stage({ takes: () => refuse('service_unavailable') })
  t.equal(await unknown.offer([1]), undefined)
})

t.test('a result above the limit for workers fails its job', async (t) => {
  const at = stage()
  await at.offer([1])
  await at.assign(1)
  at.working
    .get(jobId(1))
    ?.finish({ status: 'completed', result: { text: '\u2028'.repeat(400_000) } })
  await turn()
  t.match(at.commands.at(-1), {
    name: 'queue.report',
    input: { status: 'failed', error_type: 'ResultTooLarge', final: true },
  })
})

t.test('a report is repeated until it is decided', async (t) => {
  const it = stage()
  await it.offer([1])
  await it.assign(1)
  let tries = 0
  it.on['queue.report'] = () => (++tries < 3 ? refuse('service_unavailable') : undefined)
  await it.finish(1, { status: 'failed', error_type: 'http_500', retry_in: 50 })
  await it.pass(10_000)
  t.match(it.reports(), [{ status: 'failed', retry_in: 50 }, {}, {}])
  t.equal(it.executor.running(), 0)
})

t.test(
  'leases are renewed; a lost one ends the work without a report, a cancelled one with a report',
  async (t) => {
    const it = stage()
    await it.offer([1, 2])
    await it.assign(1)
    await it.assign(2)
    await it.pass(20_000)
    t.equal(it.commands.filter(({ name }) => name === 'queue.heartbeat').length, 2)
    it.on['queue.heartbeat'] = ({ job_id }) => ({
      reply: job_id === jobId(1) ? { alive: false } : { alive: true, cancel: { requested_at: '' } },
    })
    await it.pass(20_000)
    for (const n of [1, 2]) t.ok(it.working.get(jobId(n))?.signal.aborted)
    for (const n of [1, 2]) await it.finish(n)
    t.match(it.reports(), [{ job_id: jobId(2), status: 'cancelled' }])
    t.equal(it.reports().length, 1)
  },
)

t.test(
  'a cancel from the engine acts at once; messages about other jobs are refused',
  async (t) => {
    const it = stage()
    await it.offer([1])
    await it.assign(1)
    t.ok(await it.assign(1), 'the same lease again is known')
    t.ok(
      it.executor.receive({
        type: 'cancel',
        project: 'prj_1',
        session: 'wst_1',
        job_id: jobId(1),
        at: 0,
      }).ok,
    )
    t.ok(it.working.get(jobId(1))?.signal.aborted)
    t.notOk(
      it.executor.receive({
        type: 'cancel',
        project: 'prj_1',
        session: 'wst_2',
        job_id: jobId(1),
        at: 0,
      }).ok,
    )
    t.notOk(it.executor.receive({ type: 'drain', project: 'prj_1', session: 'wst_1' }).ok)
    t.notOk(await it.assign(1, 'prj_1', 'b'), 'a newer lease of a running job is returned')
  },
)

t.test('jobs for workers and jobs that a stop interrupts are returned', async (t) => {
  const it = stage()
  await it.offer([1, 2])
  await it.assign(1)
  await it.assign(2)
  await it.finish(1, NOT_OURS)
  t.match(it.reports(), [{ job_id: jobId(1), status: 'failed', error_type: 'WorkerOverCapacity' }])
  const stopped = it.executor.stop()
  t.notOk(it.listening())
  t.notOk(await it.assign(3))
  await it.pass(5000)
  t.ok(it.working.get(jobId(2))?.signal.aborted)
  await it.finish(2, { status: 'failed', error_type: 'stopped' })
  await it.pass(3000)
  await stopped
  t.match(it.reports().at(-1), { job_id: jobId(2), error_type: 'WorkerOverCapacity' })
})

t.test('a stopping executor returns restartable work sooner', async (t) => {
  const it = stage({ graceMs: 1000 })
  await it.offer([1, 2])
  await it.assign(1)
  await it.assign(2)
  const stopped = it.executor.stop()
  await it.pass(900)
  await it.finish(1, { status: 'completed' })
  t.match(it.reports(), [{ job_id: jobId(1), status: 'completed' }])
  t.notOk(it.working.get(jobId(2))?.signal.aborted)
  await it.pass(100)
  t.ok(it.working.get(jobId(2))?.signal.aborted)
  await it.finish(2, { status: 'failed', error_type: 'stopped' })
  t.match(it.reports().at(-1), { job_id: jobId(2), error_type: 'WorkerOverCapacity' })
  await stopped
})

t.test('an HTTP answer determines the outcome of a job', async (t) => {
  const options = {
    envelope: 'application/vnd.service.action+json',
    delay: 100,
    now: 1_767_225_600_000,
  }
  const answer = (
    status: number,
    text = '',
    content_type = 'application/json',
    retry_after?: string,
  ) =>
    outcomeOf(
      {
        status,
        content_type,
        body: Buffer.from(text),
        ...(retry_after !== undefined && { retry_after }),
      },
      options,
    )
  for (const status of [408, 429, 500, 502, 503, 599])
    t.match(answer(status), {
      status: 'failed',
      error_type: `http_${status}`,
      retry_in: 100,
      final: undefined,
    })
  for (const status of [300, 301, 307, 400, 401, 404, 410, 422, 451])
    t.match(answer(status), { status: 'failed', final: true })
  t.match(answer(429, '', 'text/plain', '2'), { retry_in: 2000 }, 'Retry-After is respected')
  t.match(answer(503, '', 'text/plain', 'Thu, 01 Jan 2026 00:00:30 GMT'), { retry_in: 30_000 })
  t.match(answer(503, '', 'text/plain', '99999'), { retry_in: 300_000 }, 'but not without end')
  for (const odd of ['soon', '-5', 'NaN', ''])
    t.match(answer(503, '', 'text/plain', odd), { retry_in: 100 }, odd)
  t.match(
    answer(200, '['.repeat(500) + ']'.repeat(500)),
    { status: 'failed', error_type: 'invalid_response', final: true },
    'a result that cannot be stored is invalid',
  )
  t.match(
    answer(200, '['.repeat(500_000) + ']'.repeat(500_000)),
    { status: 'failed', error_type: 'invalid_response', final: true },
    'also if its nesting exceeds the stack',
  )
  for (const type of ['application/json', 'text/plain'])
    t.match(answer(200, '\uFEFF{"a":1}', type), { result: { a: 1 } }, 'after a byte order mark')
  const names = Array.from({ length: 50_001 }, (_, n) => `"${n}":1`).join()
  for (const type of ['application/json', 'text/plain'])
    t.match(
      answer(200, `{${names}}`, type),
      { error_type: 'invalid_response', error_message: /more than 50000 different names/ },
      `a result with too many names as ${type}`,
    )
  t.match(answer(400, `${'x'.repeat(499)}😀`, 'text/plain'), {
    error_message: `The endpoint returned 400: ${'x'.repeat(499)}`,
  })
  const most = 1_048_576 - Buffer.byteLength(JSON.stringify({ text: '' }))
  t.match(answer(200, 'x'.repeat(most), 'text/plain'), { status: 'completed' })
  t.match(
    answer(200, 'x'.repeat(most + 1), 'text/plain'),
    { status: 'failed', error_type: 'response_too_large', final: true },
    'the result counts',
  )
  t.match(answer(200, '{"__proto__":{"x":1}}'), { error_type: 'invalid_response' })
  const envelope = (body: unknown) => answer(200, JSON.stringify(body), options.envelope)
  t.same(envelope({ output: 7, context: [{ name: 'board', content: 'x', more: 1 }] }), {
    status: 'completed',
    result: { output: 7 },
    context: [{ name: 'board', content: 'x' }],
  })
  for (const context of [undefined, null, []])
    t.same(envelope({ output: { a: 1 }, context }), { status: 'completed', result: { a: 1 } })
  for (const context of [
    {},
    ['x'],
    [{ name: 'a' }],
    [{ name: 'Bad', content: 'x' }],
    [{ name: 'a', content: '' }],
    Array.from({ length: 9 }, (_, n) => ({ name: `n${n}`, content: 'x' })),
  ])
    t.match(envelope({ context }), {
      status: 'failed',
      error_type: 'invalid_response',
      final: true,
    })
  for (const [failed, type, final] of [
    ['refused', 'address_refused', true],
    ['too_large', 'response_too_large', true],
    ['timeout', 'timeout', undefined],
    ['network', 'network_error', undefined],
  ] as const)
    t.match(outcomeOf({ failed, message: 'x' }, options), { error_type: type, final })
})

t.test('a job begins once the lease of the node is fresh', async (t) => {
  const it = stage()
  it.setFresh(false)
  await it.offer([1, 2])
  await it.assign(1)
  t.notOk(it.working.has(jobId(1)), 'the cached configuration cannot be trusted yet')
  it.setFresh(true)
  await it.pass(50)
  t.ok(it.working.has(jobId(1)))
  it.setFresh(false)
  await it.assign(2)
  await it.pass(3000)
  t.notOk(it.working.has(jobId(2)))
  t.match(it.reports(), [{ job_id: jobId(2), status: 'failed', error_type: 'WorkerOverCapacity' }])
})
