/** A host with a provider in memory, scripted replies of environments, and a manual clock. */
import t from 'tap'
import type { World } from '../../../gateway/ports.ts'
import { startHost } from '../../../nodes/hosts/host.ts'
import { ProviderFault } from '../../../nodes/hosts/provider.ts'
import type { HostRequest, HostTask } from '../../../protocol/environments/commands.ts'
import { environmentLimits } from '../../../protocol/environments/schema.ts'
import { refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { ManualClock, MemoryBus, settleAll, silent } from '../../support/memory.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'

const PROJECT = 'prj_1'
const envId = (n: number) => makeId('environment', n, new Uint8Array(9).fill(n), n)
const E1 = envId(1)

interface Sent {
  readonly id: string
  readonly name: string
  readonly input: Record<string, unknown>
  readonly command_id: string
}
type Reply = (sent: Sent) => unknown

/** Several hosts, one after the other or at the same time, with one clock and one bus. */
function stage(place = new MemoryPlace()) {
  const clock = new ManualClock()
  const bus = new MemoryBus()
  const sent: Sent[] = []
  const warned: string[] = []
  const tasks = new Map<string, HostTask>()
  const on: Record<string, Reply> = {
    'environment.claim': ({ id }) => ({ reply: tasks.get(id) }),
    'environment.progress': () => ({ reply: { current: true } }),
    'environment.report': () => ({ reply: undefined }),
    'environment.seen': () => ({ reply: { expected: true } }),
    'environment.exited': () => ({ reply: undefined }),
  }
  const start = (node = 'n1', limits = { environments: 10, operations: 2 }) => {
    let random = 0
    const world = {
      node,
      now: clock.now,
      later: clock.later,
      random: (bytes: number) => new Uint8Array(bytes).fill(++random),
      hash: (text: string) => `hash(${text})`,
      log: { ...silent, warn: ({ event }: { event: string }) => void warned.push(event) },
      command: async ({ id, name, input, command_id }: Sent) => {
        const one = { id, name, input, command_id }
        sent.push(one)
        return on[name]?.(one)
      },
    } as unknown as World
    return startHost({
      world,
      bus,
      providers: [place.provider()],
      limits,
      launch: { brand: 'Acme', gateway_url: 'http://gateway', log_level: 'info' },
      credential: (id, bytes) => `bat_${id}_${bytes[0]}`,
    })
  }
  const request = async (
    id: string,
    kind: HostRequest['kind'],
    operation = 1,
    where: 'provider' | 'place' = kind === 'provision' ? 'provider' : 'place',
    more: Partial<HostTask> = {},
  ) => {
    const message: HostRequest = { project: PROJECT, environment_id: id, operation, kind }
    tasks.set(id, {
      ...message,
      project_handle: 'default',
      name: 'one',
      provider: 'memory',
      repositories: [],
      ...(kind === 'start' && { worker: { generation: operation } }),
      ...more,
    })
    bus.publish(
      where === 'place' ? subjects.hostsAt(place.name) : subjects.hostsOf('memory'),
      message,
    )
    await settleAll()
  }
  const names = () => sent.map(({ name }) => name.slice('environment.'.length))
  const inputs = (name: string) => sent.filter((one) => one.name === name).map((one) => one.input)
  return { clock, bus, sent, warned, on, start, request, names, inputs, place }
}

t.test('an operation is claimed, done and reported', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  t.strictSame(it.inputs('environment.claim'), [
    { operation: 1, host: 'n1', place: 'memory/one', isolation: 'none, in memory' },
  ])
  t.strictSame(it.inputs('environment.report'), [{ operation: 1, host: 'n1', outcome: 'done' }])
  t.ok(it.place.environments.has(E1))
  await it.request(E1, 'destroy', 2)
  t.notOk(it.place.environments.has(E1))
  t.equal(it.inputs('environment.report').length, 2)
})

t.test('only the hash of the credential of a worker leaves the host', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  await it.request(E1, 'start', 2, 'place', {
    lifetime: 'run',
    worker: { generation: 7, queues: ['a', 'b'], concurrency: 3, command: ['node', 'w.js'] },
    repositories: [
      { full_name: 'a/b', push: false },
      { full_name: 'a/c', push: true },
      { full_name: 'a/d', push: true, provider: 'gitlab' },
    ],
  })
  const [launch] = it.place.launches
  t.strictSame(launch, {
    generation: 7,
    command: ['node', 'w.js'],
    variables: {
      ACME_API_KEY: `bat_${E1}_3`,
      ACME_PROJECT: 'default',
      ACME_LOG_LEVEL: 'info',
      ACME_QUEUES: 'a,b',
      ACME_WORKER_QUEUES: 'a,b',
      ACME_WORKER_ACTION_NAMES: '',
      ACME_WORKER_ENVIRONMENT_ID: E1,
      ACME_WORKER_KEEP_WARM: 'forever',
      ACME_WORKER_KEEP_WARM_REQUIRED: 'false',
      ACME_WORKER_CONCURRENCY: '3',
    },
    gateway_url: 'http://gateway',
    url_variable: 'ACME_API_URL',
    workspace_variable: 'ACME_RUNTIME_WORKSPACE',
    log_variable: 'ACME_WORKER_LOG_DIR',
    allowed_hosts: ['github.com:443', 'gitlab.com:443'],
  })
  t.equal(it.inputs('environment.claim')[1]?.['token_hash'], `hash(bat_${E1}_3)`)
  t.notMatch(
    JSON.stringify(it.sent.map(({ input }) => ({ ...input, token_hash: '' }))),
    'bat_',
    'no command contains the credential',
  )
})

t.test('a worker is kept warm for five minutes unless it is requested otherwise', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  for (const [operation, keep_warm] of [
    [2, undefined],
    [3, 'on-demand'],
  ] as const)
    await it.request(E1, 'start', operation, 'place', {
      lifetime: 'lease',
      worker: { generation: operation, ...(keep_warm && { keep_warm, keep_warm_required: true }) },
    })
  t.match(
    it.place.launches.map(({ variables }) => variables),
    [
      { ACME_WORKER_KEEP_WARM: '5m', ACME_WORKER_KEEP_WARM_REQUIRED: 'false' },
      { ACME_WORKER_KEEP_WARM: 'on-demand', ACME_WORKER_KEEP_WARM_REQUIRED: 'true' },
    ],
  )
})

t.test('a refused claim does nothing', async (t) => {
  const it = stage()
  it.on['environment.claim'] = () => refuse('conflict')
  it.start()
  await it.request(E1, 'provision')
  t.strictSame(it.place.calls, [])
  t.strictSame(it.names(), ['claim'])
})

t.test('a failure is reported in the words of the provider, a bug is not', async (t) => {
  const it = stage()
  it.start()
  it.place.fails = new ProviderFault('the disk is full')
  await it.request(E1, 'provision')
  it.place.fails = new Error('x is not a function')
  await it.request(E1, 'provision', 2)
  t.match(it.inputs('environment.report'), [
    { outcome: 'failed', error: 'the disk is full' },
    { outcome: 'failed', error: 'An internal error of the provider occurred.' },
  ])
})

t.test('a report is repeated under one id until it is decided', async (t) => {
  const it = stage()
  let refusals = 2
  it.on['environment.report'] = () =>
    refusals-- > 0 ? refuse('service_unavailable') : { reply: undefined }
  it.start()
  await it.request(E1, 'provision')
  await it.clock.advance(2000)
  const reports = it.sent.filter(({ name }) => name === 'environment.report')
  t.equal(reports.length, 3)
  t.equal(new Set(reports.map(({ command_id }) => command_id)).size, 1)

  it.on['environment.report'] = () => refuse('service_unavailable')
  await it.request(E1, 'destroy', 2)
  await it.clock.advance(environmentLimits.stale + 20_000)
  const count = it.inputs('environment.report').length
  await it.clock.advance(60_000)
  t.equal(it.inputs('environment.report').length, count, 'another host may have taken over')
})

t.test('progress is reported, and an operation that is not current is aborted', async (t) => {
  const it = stage()
  it.place.holds = true
  it.start()
  await it.request(E1, 'provision')
  await it.clock.advance(65_000)
  t.strictSame(it.inputs('environment.progress'), [
    { operation: 1, host: 'n1' },
    { operation: 1, host: 'n1' },
  ])
  it.on['environment.progress'] = () => ({ reply: { current: false } })
  await it.clock.advance(30_000)
  t.ok(it.place.held[0]?.signal.aborted)
  t.strictSame(it.inputs('environment.report'), [], 'its outcome is not reported')
  await it.clock.advance(60_000)
  t.equal(it.inputs('environment.progress').length, 3, 'progress ends with the operation')
})

t.test('what an aborted operation left is removed only if it is not expected', async (t) => {
  const it = stage()
  it.place.holds = true
  it.start()
  await it.request(E1, 'provision')
  it.on['environment.progress'] = () => ({ reply: { current: false } })
  it.place.environments.set(E1, { project: PROJECT })
  await it.clock.advance(30_000)
  t.notOk(it.place.calls.includes(`destroy ${E1}`), 'another host of the place may continue it')
  it.on['environment.seen'] = () => ({ reply: { expected: false } })
  await it.clock.advance(60_000)
  t.ok(it.place.calls.includes(`destroy ${E1}`))
  t.equal(it.place.environments.size, 0)
})

t.test('a newer request for a running operation checks it at once', async (t) => {
  const it = stage()
  it.place.holds = true
  it.start()
  await it.request(E1, 'provision')
  await it.request(E1, 'provision')
  t.strictSame(it.names(), ['claim'], 'a repeat changes nothing')
  it.on['environment.progress'] = () => ({ reply: { current: false } })
  it.place.holds = false
  await it.request(E1, 'destroy', 2)
  await settleAll()
  t.ok(it.place.held[0]?.signal.aborted)
  t.strictSame(it.place.calls, [`provision ${E1}`, `destroy ${E1}`])
  t.match(it.inputs('environment.report'), [{ operation: 2, outcome: 'done' }])
})

t.test('operations are bounded, and a full host does not listen for new ones', async (t) => {
  const it = stage()
  it.place.holds = true
  it.start('n1', { environments: 3, operations: 2 })
  for (let n = 1; n <= 3; n++) await it.request(envId(n), 'provision')
  t.equal(it.place.held.length, 2)
  it.place.holds = false
  for (const held of it.place.held) held.finish()
  await settleAll()
  t.equal(it.place.environments.size, 2, 'the third request reached no host')
  await it.request(envId(3), 'provision')
  t.equal(it.place.environments.size, 3)
  await it.request(envId(4), 'provision')
  t.equal(it.place.environments.size, 3, 'at most three environments')
  await it.request(envId(1), 'start', 2)
  t.equal(it.place.launches.length, 1, 'its own environments are still served')
  await it.request(envId(1), 'destroy', 3)
  await it.request(envId(4), 'provision', 2)
  t.equal(it.place.environments.size, 3, 'a place that became free is used')
})

t.test('requests for environments of the place wait for a free operation', async (t) => {
  const it = stage()
  it.start()
  for (let n = 1; n <= 4; n++) await it.request(envId(n), 'provision')
  it.place.holds = true
  for (let n = 1; n <= 4; n++) await it.request(envId(n), 'start', 2)
  t.equal(it.place.held.length, 2)
  it.place.holds = false
  for (const held of it.place.held) held.finish()
  await settleAll()
  await settleAll()
  t.equal(it.place.launches.length, 4)
})

t.test('the end of a worker is reported until it is decided', async (t) => {
  const it = stage()
  let refusals = 1
  it.on['environment.exited'] = () =>
    refusals-- > 0 ? refuse('service_unavailable') : { reply: undefined }
  it.start()
  await it.request(E1, 'provision')
  await it.request(E1, 'start', 2)
  it.place.exit(E1, true)
  await it.clock.advance(1000)
  t.strictSame(
    it.inputs('environment.exited'),
    Array(2).fill({ place: 'memory/one', generation: 2, idle: true, exit_code: 0 }),
  )
  await it.clock.advance(60_000)
  t.match(it.inputs('environment.seen').at(-1), { presence: 'present' })
  t.notOk('generation' in (it.inputs('environment.seen').at(-1) ?? {}), 'no worker runs')
})

t.test('the end of a worker is reported after its start', async (t) => {
  const place: MemoryPlace = new MemoryPlace('memory/one', (_, end) => {
    queueMicrotask(() => end(false))
    return { kill() {} }
  })
  const it = stage(place)
  it.start()
  await it.request(E1, 'provision')
  await it.request(E1, 'start', 2)
  t.strictSame(it.names().slice(-3), ['claim', 'report', 'exited'])
})

t.test('after a restart, everything is reported at once, and leftovers are removed', async (t) => {
  const it = stage()
  const stop = it.start()
  for (let n = 1; n <= 3; n++) await it.request(envId(n), 'provision')
  await it.request(envId(1), 'start', 2)
  await stop()
  it.sent.length = 0
  it.on['environment.seen'] = ({ id }) => ({ reply: { expected: id !== envId(3) } })
  it.start('n2')
  await settleAll()
  t.strictSame(
    it.inputs('environment.seen').sort(byText),
    [
      { place: 'memory/one', host: 'n2', presence: 'present' },
      { place: 'memory/one', host: 'n2', presence: 'present' },
      { place: 'memory/one', host: 'n2', presence: 'present', generation: 2 },
    ].sort(byText),
  )
  t.strictSame([...it.place.environments.keys()], [envId(1), envId(2)])
})
const byText = (a: object, b: object) => JSON.stringify(a).localeCompare(JSON.stringify(b))

t.test('reports are spread over the interval, and none is left out', async (t) => {
  const it = stage()
  for (let n = 1; n <= 200; n++) it.place.environments.set(envId(n), { project: PROJECT })
  it.start()
  await settleAll()
  await it.clock.advance(29_000)
  t.equal(it.inputs('environment.seen').length, 200, 'at the start')
  await it.clock.advance(1000)
  const counts: number[] = []
  for (let i = 0; i < 30; i++) {
    const before = it.sent.length
    await it.clock.advance(1000)
    counts.push(it.sent.length - before)
  }
  t.ok(Math.max(...counts) < 40, `at most 40 a second: ${counts}`)
  t.ok(counts.reduce((sum, one) => sum + one) >= 195)
})

t.test('an environment that disappeared is reported as missing until answered', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  it.place.environments.delete(E1)
  it.on['environment.seen'] = () => refuse('service_unavailable')
  await it.clock.advance(90_000)
  it.on['environment.seen'] = () => ({ reply: { expected: true } })
  await it.clock.advance(60_000)
  const seen = it.inputs('environment.seen')
  t.ok(seen.length >= 2)
  t.ok(seen.every(({ presence }) => presence === 'missing'))
  await it.clock.advance(120_000)
  t.equal(it.inputs('environment.seen').length, seen.length, 'it is forgotten after the answer')
})

t.test('an environment that changed while its report was in flight is not removed', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  let answer = (_: unknown) => {}
  it.on['environment.seen'] = () => new Promise((resolve) => (answer = resolve))
  await it.clock.advance(60_000)
  await it.request(E1, 'start', 2)
  answer({ reply: { expected: false } })
  await settleAll()
  t.notOk(it.place.calls.includes(`destroy ${E1}`))
  it.on['environment.seen'] = () => ({ reply: { expected: false } })
  await it.clock.advance(60_000)
  t.ok(it.place.calls.includes(`destroy ${E1}`), 'a later report decides')
})

t.test('a provider that cannot be inspected loses nothing, and is logged once', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  const { entries } = it.place.environments
  it.place.environments[Symbol.iterator] = () => {
    throw new Error('the engine does not answer')
  }
  await it.clock.advance(120_000)
  t.strictSame(it.warned, ['environment_inspection_failed'])
  t.ok(it.inputs('environment.seen').every(({ presence }) => presence === 'present'))
  it.place.environments[Symbol.iterator] = entries
})

t.test('two hosts of one place both serve it, and the claim decides', async (t) => {
  const it = stage()
  let claims = 0
  const claim = it.on['environment.claim']
  it.on['environment.claim'] = (sent) => (claims++ === 0 ? claim?.(sent) : refuse('conflict'))
  const stop = it.start('n1')
  it.start('n2')
  await it.request(E1, 'provision')
  t.equal(claims, 1, 'one host of the group')
  claims = 0
  await it.request(E1, 'start', 2)
  t.equal(claims, 2, 'every host of the place')
  t.equal(it.place.launches.length, 1)
  await stop()
  claims = 0
  await it.request(E1, 'start', 3)
  t.equal(it.place.launches.length, 2, 'the other host continues')
})

t.test('logs are answered by a host of the place, unless they are not there', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  it.place.logs.set(E1, 'one\ntwo\nthree')
  const ask = (environment_id: string) =>
    it.bus.request(subjects.hostLogs('memory/one'), {
      environment_id,
      log_name: 'worker',
      tail: 2,
      max_bytes: 100,
    })
  t.strictSame(await ask(E1), { answer: { content: 'two\nthree', truncated: true } })
  t.equal(await ask(envId(9)), 'timeout', 'no answer')
})

t.test('a stopped host ends its operations without a report', async (t) => {
  const it = stage()
  it.place.holds = true
  const stop = it.start()
  await it.request(E1, 'provision')
  const stopped = stop()
  await it.clock.advance(5000)
  t.ok(it.place.held[0]?.signal.aborted)
  await stopped
  t.strictSame(it.inputs('environment.report'), [])
  await it.request(envId(2), 'provision')
  await it.request(envId(2), 'start', 2)
  await it.clock.advance(120_000)
  t.strictSame(it.names(), ['claim'], 'nothing is sent any more')
})
