/** Operations of a host: claims, reports, limits, launches of workers, and requests for logs. */
import t from 'tap'
import { ProviderFault } from '../../../nodes/hosts/provider.ts'
import { environmentLimits } from '../../../protocol/environments/schema.ts'
import { refuse } from '../../../protocol/errors.ts'
import { subjects } from '../../../protocol/subjects.ts'
import { settleAll } from '../../support/memory.ts'
import { E1, envId, PROJECT, stage } from '../support/host-stage.ts'

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

t.test('the only host of a place says so when it claims', async (t) => {
  const it = stage()
  it.place.sole = true
  it.start()
  await it.request(E1, 'provision')
  t.equal(it.inputs('environment.claim')[0]?.['sole'], true)
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
