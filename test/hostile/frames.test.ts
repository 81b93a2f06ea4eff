/**
 * Every frame of the worker socket in malformed shapes and in the wrong order. Invariants: each
 * frame is answered, or the connection is closed, as documented; and no job is lost.
 */
import fc from 'fast-check'
import t from 'tap'
import { closeCodes, up } from '../../protocol/workers/socket.ts'
import { terminalDown } from '../../protocol/workers/terminals.ts'
import { acting, until } from '../scenarios/support/given.ts'
import { hasty, open, runOf, seen, start } from '../scenarios/support/sockets.ts'
import { service, type TestWorker } from '../support/service.ts'
import { often, seed, tries } from './support/campaign.ts'
import { fitting } from './support/generate.ts'
import { mutated } from './support/mutate.ts'
import { settled, usage } from './support/usage.ts'

const s = await service(hasty)
t.teardown(() => s.stop())
t.setTimeout(tries(120_000))
t.comment(`HOSTILE_SEED=${seed}`)
const base = await settled(s)
/**
 * Waits until the node is ready. The node shares its process with the sender of the frames, so it
 * may lose its lease during a flood.
 */
const ready = () =>
  until(
    () => s.raw('GET', '/readyz'),
    ({ status }) => status === 200,
    'readiness',
  )
/**
 * Documented codes of `error` frames, and close codes of the server. Close code 1009: the frame is
 * too large.
 */
const faults = new Set([
  'invalid_actor',
  'worker_instance_conflict',
  'register_failed',
  'claim_failed',
  'temporarily_unavailable',
  'lease_lost',
  'not_registered',
  'bad_frame',
  'unknown_frame',
  'payload_too_large',
  'rate_limit_exceeded',
])
const codes = new Set<number>([...Object.values(closeCodes), 1009])
const down = new Set([
  'worker.registered',
  'jobs.claimed',
  'work.available',
  'job.heartbeat.ack',
  'job.report.ack',
  'job.cancel',
  'worker.drain',
  'worker.draining.ack',
  'keepalive',
  'error',
  ...Object.keys(terminalDown),
])

/**
 * Describes an undocumented frame or close code that a worker received. Returns undefined if all
 * were documented.
 */
function fault(worker: TestWorker, closed: number | undefined): string | undefined {
  for (const frame of worker.frames) {
    if (!down.has(String(frame['type']))) return `the frame ${JSON.stringify(frame).slice(0, 200)}`
    const error = frame['error'] as { code?: string; message?: string } | undefined
    if (frame['type'] === 'error' && (!faults.has(String(error?.code)) || !error?.message))
      return `the error ${JSON.stringify(frame).slice(0, 300)}`
    if (/RangeError|TypeError|node_modules|\.ts:\d/.test(JSON.stringify(error ?? {})))
      return `an error from the inside: ${JSON.stringify(error)}`
  }
  return closed === undefined || codes.has(closed) ? undefined : `closed with ${closed}`
}
/**
 * Sends texts or bytes on a new connection.
 * @throws {Error} when a received frame or the close code is undocumented, or when the connection
 *   stays open but an additional last frame is not answered.
 */
async function play(messages: readonly (string | Uint8Array)[]): Promise<void> {
  const worker = await s.worker({ type: null })
  let closed: number | undefined
  void worker.closed.then(({ code }) => {
    closed = code
  })
  for (const message of messages) worker.socket.send(message)
  const probe = worker
    .wait((frame) => frame['message_id'] === 'the end', 'an answer after all of them')
    .then(
      () => true,
      () => false,
    )
  worker.send({ type: 'there is none', message_id: 'the end' })
  const alive = await Promise.race([probe, worker.closed.then(() => false)])
  const wrong = fault(worker, closed)
  worker.close()
  if (wrong !== undefined) throw new Error(wrong)
  if (!alive && closed === undefined) throw new Error('neither answered nor closed')
}
const known = [
  'default',
  'act',
  'job_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  'lt_x.=',
  'lt_00.default',
  'the instance',
  '__proto__',
  'constructor',
  '*',
  '>',
  'a.b',
  '',
]
const frames = Object.entries(up)

for (const [index, [type, schema]] of frames.entries())
  t.test(type, { timeout: tries(30_000) }, async () => {
    const register = JSON.stringify({
      type: 'worker.register',
      worker_instance_id: `fuzz ${type}`,
      message_id: 'register',
      concurrency_limit: 2,
    })
    await often(
      type,
      500 + index,
      12,
      fc.tuple(
        fc.boolean(),
        fc.array(mutated(fitting(schema, known)), { minLength: 1, maxLength: 6 }),
      ),
      async ([registered, messages]) => {
        await play([...(registered ? [register] : []), ...messages])
      },
    )
  })

t.test('frames in any order', { timeout: tries(30_000) }, async () => {
  const any = fc
    .oneof(...frames.map(([, schema]) => fitting(schema, known)))
    .map((frame) => JSON.stringify(frame))
  const common = fc.constantFrom(
    ...frames.map(([type]) =>
      JSON.stringify({
        type,
        message_id: type,
        worker_instance_id: 'any order',
        job_id: known[2],
        lease_token: known[3],
        sequence: 0,
        delta: {},
      }),
    ),
  )
  await often(
    'frames in any order',
    600,
    25,
    fc.array(fc.oneof(any, common), { minLength: 2, maxLength: 20 }),
    play,
  )
})

t.test('out of order, repeated, and for leases of other workers', async (t) => {
  const worker = await s.worker({ type: null })
  const said = async (frame: object, type: string) => {
    const got = worker.wait((one) => one['type'] === type, type)
    worker.send(frame as Record<string, unknown>)
    return got
  }
  const lease = { job_id: 'job_01ARZ3NDEKTSV4RRFFQ69G5FAV', lease_token: 'lt_00.default' }
  for (const frame of [
    { type: 'jobs.claim' },
    { type: 'job.report', ...lease },
    { type: 'job.heartbeat', ...lease },
    { type: 'worker.ready' },
    { type: 'worker.draining' },
  ])
    t.match(await said(frame, 'error'), { error: { code: 'not_registered' } }, frame.type)
  t.match(
    await said({ type: 'worker.register', worker_instance_id: 'orderly' }, 'worker.registered'),
    { worker_session_token: /^wst_/ },
  )
  t.match(
    await said({ type: 'worker.register', worker_instance_id: 'orderly' }, 'error'),
    { error: { code: 'bad_frame' } },
    'twice',
  )
  t.match(await said({ type: 'job.heartbeat', ...lease }, 'job.heartbeat.ack'), {
    cancel: { reason: 'lease_lost' },
  })
  t.match(await said({ type: 'job.report', ...lease, result: {} }, 'error'), {
    error: { code: 'lease_lost' },
  })
  for (const lease_token of [
    '',
    'lt_',
    `lt_${'x'.repeat(100_000)}.default`,
    'lt_x.=ff',
    'lt_x.=2e',
    '\ud800',
  ])
    t.match(
      await said({ type: 'job.report', job_id: lease.job_id, lease_token }, 'error'),
      { error: { code: 'lease_lost' } },
      lease_token.slice(0, 20),
    )
  t.match(await said({ type: 'job.log', ...lease, lines: [{ text: '\ud800\0' }] }, 'error'), {
    error: { code: 'lease_lost' },
  })
  for (const lines of [[], [{}], [{ text: 'x', level: 'loud' }], [{ text: 'x', fields: 'y' }]])
    t.match(await said({ type: 'job.log', ...lease, lines }, 'error'), {
      error: { code: 'bad_frame' },
    })
  worker.send({ type: 'jobs.claim', message_id: 'one', available_slots: 1 })
  worker.send({ type: 'jobs.claim', message_id: 'one', available_slots: 1 })
  worker.send({ type: 'generation.delta', ...lease, sequence: 0, delta: {} })
  t.equal((await said({ type: 'nothing' }, 'error'))['error']?.['code'], 'unknown_frame')
  worker.close()
})

t.test('a result that cannot be stored fails its job once, and the engine continues', async (t) => {
  const worker = await s.worker({ action_names: ['spoil'] })
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  for (const [result, why] of [
    [deep(65), 'deep'],
    [deep(20_000), 'deep'],
    [deep(300_000), 'deep'],
    [`{"a":[${'['.repeat(5000)}${']'.repeat(5000)}]}`, 'deep'],
    ['{"a":1e400}', 'number'],
    ['{"a":{"__proto__":{"x":1}}}', 'name'],
  ] as const) {
    const run = await start(s, 'spoil')
    const job = await worker.job()
    const message_id = `spoil ${result.length}`
    const acknowledged = worker.wait(
      (frame) => frame['type'] === 'job.report.ack' && frame['message_id'] === message_id,
      `an answer to a result of ${result.length} bytes`,
    )
    worker.socket.send(
      `{"type":"job.report","message_id":"${message_id}","job_id":"${job['id']}",` +
        `"lease_token":"${job['lease_token']}","result":${result}}`,
    )
    t.match(await acknowledged, { duplicate: false })
    t.match(
      await until(
        () => runOf(s, run),
        ({ status }) => status !== 'running',
        'the end of the run',
      ),
      { status: 'failed', error_type: 'ResultInvalid', error_message: new RegExp(why) },
    )
  }
  const run = await start(s, 'spoil')
  await worker.report(await worker.job(), {
    status: 'failed',
    error_type: 'x'.repeat(1_000_000),
    error_message: 'y'.repeat(5_000_000),
  })
  const failed = await until(
    () => runOf(s, run),
    ({ status }) => status !== 'running',
    'the end of the run',
  )
  t.ok(JSON.stringify(failed).length < 100_000, 'a long reason is cut off')
  worker.close()
})

t.test(
  'bytes, sizes, floods, and connections that end early',
  { timeout: tries(60_000) },
  async (t) => {
    await play([
      Buffer.from([0, 1, 2, 0xff]),
      Buffer.alloc(0),
      '',
      ' ',
      '[]',
      'null',
      '"x"',
      '{',
      '\u0000',
      `{"type":"keepalive","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    ])
    await play([`{"type":"${'x'.repeat(15_000_000)}"}`])
    await ready()
    const large = await s.worker({ type: null })
    large.socket.on('error', () => {})
    large.socket.send('x'.repeat(17 * 1_048_576), () => {})
    t.ok(
      [1006, 1009].includes((await large.closed).code),
      'more than the largest frame ends the connection',
    )
    await ready()
    const flood = await s.worker({ type: null })
    flood.socket.on('error', () => {})
    for (let n = 0; n < 40_000; n++) flood.socket.send('{"type":"keepalive"}')
    t.equal((await flood.closed).code, closeCodes.too_many_frames)
    await ready()
    const pings = await s.worker()
    for (let n = 0; n < 5000; n++) pings.socket.ping(Buffer.alloc(100))
    pings.send({ type: 'nothing', message_id: 'after pings' })
    await pings.wait(({ message_id }) => message_id === 'after pings')
    pings.close()
    await ready()
    const registers = await Promise.all(
      Array.from({ length: tries(40) }, (_, n) =>
        s.worker({ type: null }).then((worker) => {
          worker.send({
            type: 'worker.register',
            worker_instance_id: 'the same',
            concurrency_limit: 1,
          })
          worker.send({ type: 'jobs.claim', available_slots: 5 })
          if (n % 2 === 0) worker.socket.terminate()
          return worker
        }),
      ),
    )
    for (const worker of registers) worker.close()
    await ready()
    const wanted = await Promise.all(
      Array.from({ length: 10 }, () => start(s, 'act', { attempts: 10 })),
    )
    for (let n = 0; n < tries(10); n++) {
      const worker = await s.worker({ action_names: ['act'], concurrency_limit: 3 })
      worker.send({ type: 'jobs.claim', available_slots: 3 })
      if (n % 2 === 0) worker.send({ type: 'worker.draining' })
      worker.socket.terminate()
    }
    // If a connection closes before a claimed job is sent to the worker, the job returns to its
    // queue immediately. A sent job is retried after its lease has expired, here after 3 s.
    await ready()
    const good = await s.worker({ action_names: ['act'], concurrency_limit: 10 })
    for (const _ of wanted) await good.report(await good.job())
    for (const run of wanted)
      t.match(
        await until(
          () => runOf(s, run),
          ({ status }) => status !== 'running',
          'the end of a run',
        ),
        { status: 'completed' },
      )
    good.close()
  },
)

t.test('malformed upgrades', async (t) => {
  await ready()
  const authorization = `Bearer ${s.key}`
  t.equal((await open(s.url, { headers: {} })).status, 401)
  t.equal((await open(s.url, { headers: { authorization: 'Bearer \u00ff' } })).status, 401)
  for (const project of ['nothing', '%00', '%ff', '__proto__', '..%2f..', 'x'.repeat(2000)])
    t.equal(
      (await open(s.url, { project, headers: { authorization } })).status,
      404,
      project.slice(0, 20),
    )
  for (const protocols of [
    ['service.bearer.'],
    ['service.bearer.%%%'],
    ['service.worker.v1', 'service.bearer.AAAA'],
    [`service.bearer.${'A'.repeat(2000)}`],
  ]) {
    t.equal(
      (await open(s.url, { protocols }).catch(() => ({ status: 401 }))).status,
      401,
      protocols.join().slice(0, 40),
    )
  }
})

t.test('no connection, stream or job is left', async (t) => {
  await s.ok('run.start', { spec: acting() })
  const worker = await s.worker({ action_names: ['act'] })
  await worker.report(await worker.job())
  await seen(worker, 'job.report.ack')
  worker.close()
  const after = await settled(s, base)
  t.match(after, { sse: 0, sockets: 0, followers: 0, failed: 0 })
  t.ok(after.files <= base.files + 8, `open files: ${base.files}, then ${after.files}`)
  t.match((await s.raw('GET', '/readyz')).body, { status: 'ready' })
  t.equal((await usage(s)).failed, 0)
})
