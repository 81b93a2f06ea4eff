/** Providers over HTTP with a scripted service and a clock that the test advances. */
import t, { type Test } from 'tap'
import { createHttpProvider } from '../../../../nodes/hosts/http/http.ts'
import type { WorkerExit, WorkerLaunch } from '../../../../nodes/hosts/provider.ts'
import type { Failed, Received, Sending } from '../../../../nodes/outbound/post.ts'
import type { HostTask } from '../../../../protocol/environments/commands.ts'

const SECRET = 'secret-of-the-service'
const KEY = 'batenv_secret_0123456789'
const task: HostTask = {
  operation: 7,
  kind: 'start',
  project: 'prj_1',
  environment_id: 'env_1',
  name: 'desk',
  provider: 'cloud',
  template_id: 'coding-default',
  repositories: [],
}
const launch: WorkerLaunch = {
  generation: 2,
  variables: { SERVICE_API_KEY: KEY },
  gateway_url: 'http://127.0.0.1:8080',
  url_variable: 'SERVICE_API_URL',
  workspace_variable: 'SERVICE_RUNTIME_WORKSPACE',
  log_variable: 'SERVICE_WORKER_LOG_DIR',
  allowed_hosts: ['github.com:443'],
}
const signal = new AbortController().signal

type Answer = Received | Failed
const received = (status: number, value?: unknown, more: Partial<Received> = {}): Received => ({
  status,
  content_type: 'application/json',
  body: Buffer.from(value === undefined ? '' : JSON.stringify(value)),
  ...more,
})
interface Request {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Record<string, unknown>
}
/** Creates a provider whose service returns the responses in order, and then empty responses. */
function providerOf(t: Test, answers: Answer[] = [], more: { readonly url?: string } = {}) {
  const requests: Request[] = []
  const pauses: number[] = []
  const timers = new Set<{ readonly ms: number; readonly run: () => void }>()
  const provider = createHttpProvider({
    name: 'cloud',
    url: 'https://cloud.example.org/baton/',
    secret: SECRET,
    gateway_url: 'https://baton.example.org',
    installation: 'org_1',
    limits: { memory_bytes: 1, cpus: 2, disk_bytes: 3, processes: 4 },
    clock: {
      now: () => 0,
      // Pauses between requests end immediately. The test triggers the polling of workers.
      later: (ms, run) => {
        const timer = { ms, run }
        if (ms === 5000) timers.add(timer)
        else {
          pauses.push(ms)
          setImmediate(run)
        }
        return () => timers.delete(timer)
      },
    },
    post: async (sending: Sending) => {
      requests.push({
        path: sending.url,
        headers: sending.headers,
        body: JSON.parse(sending.body) as Record<string, unknown>,
      })
      return answers.shift() ?? received(200, {})
    },
    ...more,
  })
  if ('unavailable' in provider) throw new Error(provider.unavailable)
  t.teardown(() => provider.close())
  const exits: WorkerExit[] = []
  provider.onExit((exit) => exits.push(exit))
  return {
    provider,
    requests,
    pauses,
    exits,
    /** Triggers one poll of the workers, and waits until it has ended. */
    look: async () => {
      const [timer] = timers
      timers.clear()
      timer?.run()
      for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    },
  }
}
const inspection = (worker?: object) =>
  received(200, { environments: [{ environment_id: 'env_1', project: 'prj_1', worker }] })

t.test('workers of a service elsewhere need a gateway that they reach', async (t) => {
  const options = { name: 'cloud', secret: SECRET, gateway_url: 'http://127.0.0.1:8080' }
  const made = createHttpProvider({ ...options, url: 'https://a.example.org' } as never)
  t.match(made, { unavailable: /cannot reach the gateway at http:\/\/127.*gateway_url/ })
})

t.test('operations are requests with what the service needs', async (t) => {
  const { provider, requests } = providerOf(t)
  t.equal(provider.place, 'http/cloud')
  await provider.provision(task, signal)
  await provider.startWorker(task, launch, signal)
  await provider.destroy('env_1')
  t.match(requests, [
    {
      path: 'https://cloud.example.org/baton/create',
      headers: { authorization: `Bearer ${SECRET}`, 'idempotency-key': 'env_1/create/7' },
      body: {
        installation: 'org_1',
        environment_id: 'env_1',
        operation: 7,
        project: 'prj_1',
        name: 'desk',
        template_id: 'coding-default',
        limits: { memory_bytes: 1, cpus: 2, disk_bytes: 3, processes: 4 },
      },
    },
    { path: /\/wake$/, body: { environment_id: 'env_1', operation: 7 } },
    {
      path: /\/exec$/,
      body: {
        generation: 2,
        variables: { SERVICE_API_KEY: KEY, SERVICE_API_URL: 'https://baton.example.org' },
        workspace_variable: 'SERVICE_RUNTIME_WORKSPACE',
        log_variable: 'SERVICE_WORKER_LOG_DIR',
        allowed_hosts: ['github.com:443'],
      },
    },
    { path: /\/destroy$/, body: { installation: 'org_1', environment_id: 'env_1' } },
  ])
  await provider.startWorker(task, launch, signal)
  const key = (at: number) => requests[at]?.headers['idempotency-key']
  t.equal(key(2), key(5), 'a repeat of an exec has its key')
  const other = { ...launch, variables: { SERVICE_API_KEY: `${KEY}-other` } }
  await provider.startWorker(task, other, signal)
  t.not(key(2), key(7), 'a worker with another credential is other work')
  t.notMatch(key(7), KEY)
  t.equal(key(3), undefined, 'an environment is destroyed again after it was created again')
})

t.test('a request is repeated while the service works on it', async (t) => {
  const { provider, requests, pauses } = providerOf(t, [
    received(202),
    received(202, {}, { retry_after: '7' }),
    received(202, {}, { retry_after: '0' }),
    received(202, {}, { retry_after: '3600' }),
    received(202, {}, { retry_after: 'Wed, 21 Oct 2026 07:28:00 GMT' }),
  ])
  await provider.provision(task, signal)
  t.strictSame(pauses, [2000, 7000, 100, 30_000, 2000])
  t.equal(new Set(requests.map((one) => JSON.stringify(one))).size, 1, 'they are the same')
})

t.test('a request is repeated neither without end nor after an abort', async (t) => {
  const working = Array.from({ length: 100 }, () => received(202, {}, { retry_after: '30' }))
  const { provider, requests } = providerOf(t, working)
  await t.rejects(provider.destroy('env_1'), {
    message: 'The provider cloud did not complete the operation destroy in time.',
  })
  t.equal(requests.length, 61, 'half an hour')
  const abort = new AbortController()
  const begun = provider.provision(task, abort.signal)
  abort.abort(new Error('aborted'))
  await t.rejects(begun, /aborted/)
})

t.test('failures that may be temporary are repeated a limited number of times', async (t) => {
  const network: Failed = { failed: 'network', message: 'connection refused' }
  const some = [network, received(503), received(429), { ...network, failed: 'timeout' } as Failed]
  const { provider, requests, pauses } = providerOf(t, some)
  await provider.provision(task, signal)
  t.equal(requests.length, 5)
  t.strictSame(pauses, [500, 1000, 2000, 4000])
  const down = providerOf(
    t,
    Array.from({ length: 6 }, () => network),
  )
  await t.rejects(down.provider.provision(task, signal), {
    message: 'The provider cloud failed to create: connection refused.',
  })
  t.equal(down.requests.length, 6)
})

t.test('refusals and invalid answers fail at once, without secrets', async (t) => {
  const fault = (answer: Answer) =>
    providerOf(t, [received(200), answer])
      .provider.startWorker(task, launch, signal)
      .then(
        () => 'no fault',
        (error: Error) => error.message,
      )
  const said = (message: string) => ({ error: { message } })
  t.equal(
    await fault(received(409, said(`${KEY} is older, ${SECRET}`))),
    'The provider cloud refused to exec: [redacted] is older, [redacted]',
  )
  t.equal(await fault(received(401)), 'The provider cloud refused to exec: status 401.')
  t.equal(await fault(received(404)), 'The provider cloud refused to exec: status 404.')
  t.equal(await fault(received(302)), 'The provider cloud refused to exec: status 302.')
  t.match(await fault(received(200, [])), /invalid answer to exec, at \//)
  t.match(await fault({ failed: 'too_large', message: 'the response is larger' }), /larger/)
  const { provider } = providerOf(t, [received(404), received(404)])
  await provider.destroy('env_1')
  t.equal(await provider.logs('env_1', { log_name: 'worker', tail: 1, max_bytes: 1 }), undefined)
})

t.test('everything that the service has is listed, over all pages', async (t) => {
  const { provider, requests } = providerOf(t, [
    received(200, {
      environments: [{ environment_id: 'env_1', project: 'prj_1' }],
      next_cursor: 'second',
    }),
    received(200, {
      environments: [
        { environment_id: 'env_2', project: 'prj_2', worker: { generation: 3, running: true } },
        { environment_id: 'env_3', project: 'prj_2', worker: { generation: 1, running: false } },
      ],
    }),
    received(404),
  ])
  t.strictSame(await provider.inspect(), [
    { project: 'prj_1', environment_id: 'env_1' },
    { project: 'prj_2', environment_id: 'env_2', generation: 3 },
    { project: 'prj_2', environment_id: 'env_3' },
  ])
  t.strictSame(
    requests.map(({ body }) => body),
    [{ installation: 'org_1' }, { installation: 'org_1', cursor: 'second' }],
  )
  await t.rejects(provider.inspect(), /refused to inspect/, 'an empty list would remove everything')
})

t.test('the end of a worker is found and reported once', async (t) => {
  const running = inspection({ generation: 2, running: true })
  const { provider, requests, exits, look } = providerOf(t)
  await look()
  t.equal(requests.length, 0, 'without a worker nothing is looked at')
  await provider.startWorker(task, launch, signal)

  const answers: Answer[] = [running, inspection({ generation: 2, running: false, exit_code: 0 })]
  const again = providerOf(t, [received(200), received(200), ...answers])
  await again.provider.startWorker(task, launch, signal)
  await again.look()
  t.strictSame(again.exits, [])
  await again.look()
  await again.look()
  t.strictSame(again.exits, [
    { project: 'prj_1', environment_id: 'env_1', generation: 2, idle: true, exit_code: 0 },
  ])
  const failed = providerOf(t, [
    running,
    inspection({ generation: 2, running: false, error: 'The machine failed.' }),
    running,
    received(200, { environments: [] }),
  ])
  for (let i = 0; i < 4; i++) await failed.provider.inspect()
  t.match(failed.exits, [
    { idle: false, error: 'The machine failed.' },
    { idle: false, error: 'The provider cloud does not have the worker any more.' },
  ])
  t.strictSame(exits, [])
})
