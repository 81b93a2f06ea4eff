/**
 * The provider `docker` on a scripted engine: faults, interruptions and races that are rare on a
 * real engine.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createDockerProvider, type DockerOptions } from '../../../../nodes/hosts/docker/docker.ts'
import { createOutputDecoder } from '../../../../nodes/hosts/docker/output.ts'
import type { WorkerExit, WorkerLaunch } from '../../../../nodes/hosts/provider.ts'
import { createTail } from '../../../../nodes/hosts/tail.ts'
import { systemClock } from '../../../../nodes/system.ts'
import type { HostTask } from '../../../../protocol/environments/commands.ts'

const SECRET = 'batenv_secret_0123456789'
const task: HostTask = {
  operation: 1,
  kind: 'start',
  project: 'prj_1',
  environment_id: 'env_1',
  name: 'one',
  provider: 'docker',
  repositories: [],
}
const launch: WorkerLaunch = {
  generation: 2,
  variables: { SERVICE_API_KEY: SECRET },
  gateway_url: 'http://gateway.example.org',
  url_variable: 'SERVICE_API_URL',
  workspace_variable: 'SERVICE_RUNTIME_WORKSPACE',
  log_variable: 'SERVICE_WORKER_LOG_DIR',
  allowed_hosts: [],
}
const signal = new AbortController().signal
const labels = (generation?: number) => ({
  'baton.installation': 'org_1',
  'baton.project': 'prj_1',
  'baton.environment': 'env_1',
  ...(generation !== undefined && { 'baton.generation': String(generation) }),
})

type Answers = (call: string, body: unknown, answer: ServerResponse) => unknown
const json = (value: unknown, status = 200) => ({ status, value })
/** The responses of an engine without containers, by call. */
const empty: Record<string, unknown> = {
  'GET /info': {},
  'GET /version': { Version: '1.0' },
  'POST /volumes/create': {},
  'GET /volumes/baton-place-org_1': { Labels: { 'baton.place': 'p1' } },
  'GET /volumes/baton-env_1': {},
  'GET /volumes': { Volumes: null },
  'GET /containers/json': [],
}
/**
 * Starts an engine. `answers` returns the response to a call, undefined for the response in
 * `empty`, or `handled` if it has written to the HTTP response itself.
 */
async function engine(t: Test, answers: Answers, more: Partial<DockerOptions> = {}) {
  const calls: string[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '', 'http://engine')
    const call = `${request.method} ${pathname}`
    calls.push(call)
    let text = ''
    for await (const part of request) text += part
    const found = answers(call, text === '' ? undefined : JSON.parse(text), response)
    if (found === 'handled') return
    if (call === 'GET /events' && found === undefined) {
      response.writeHead(200).flushHeaders()
      return
    }
    const { status, value } = (found ?? json(empty[call] ?? {})) as ReturnType<typeof json>
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(status === 204 ? undefined : JSON.stringify(value))
  }
  const server = createServer((request, response) => void handle(request, response))
  // The path of a socket is limited to 107 bytes, which a path below `testdir` can exceed.
  const folder = mkdtempSync(join(tmpdir(), 'baton-engine-'))
  const socket = join(folder, 'engine.sock')
  await new Promise<void>((done) => server.listen(socket, done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const provider = await createDockerProvider({
    socket,
    image: 'image:1',
    installation: 'org_1',
    limits: { memory_bytes: 2 ** 30, cpus: 0.5, disk_bytes: 2 ** 30, processes: 100 },
    program: {
      command: ['node', '/program.mjs', 'environment-worker'],
      needs: ['node', 'git'],
      mounts: [{ source: '/modules', target: '/program' }],
    },
    gateway_url: 'http://gateway.example.org',
    clock: { ...systemClock, later: (_, run) => systemClock.later(1, run) },
    random: () => 'p1',
    ...more,
  })
  if ('unavailable' in provider) throw new Error(provider.unavailable)
  t.teardown(() => provider.close())
  return { provider, calls }
}

t.test('without an engine, or a gateway that containers reach, it says what to do', async (t) => {
  const options = {
    socket: '/none.sock',
    gateway_url: 'http://127.0.0.1:8080',
  } as DockerOptions
  t.match(await createDockerProvider(options), {
    unavailable:
      /cannot reach the gateway at http:\/\/127.*BATON_GATEWAY_URL.*BATON_DOCKER_NETWORK/,
  })
  t.match(await createDockerProvider({ ...options, network: 'host' }), {
    unavailable: /does not answer: .*ENOENT.*BATON_DOCKER_SOCKET/,
  })
})

t.test('the container of a worker is limited, and its credential is no argument', async (t) => {
  let created: Record<string, Record<string, unknown>> = {}
  const { provider } = await engine(t, (call, body) => {
    if (call !== 'POST /containers/create') return
    created = body as typeof created
    return json({ Id: 'c1' }, 201)
  })
  await provider.startWorker(task, launch, signal)
  t.match(created, {
    Image: 'image:1',
    User: '1000:1000',
    WorkingDir: '/environment/workspace',
    Cmd: ['node', '/program.mjs', 'environment-worker'],
    Labels: labels(2),
    HostConfig: {
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Memory: 2 ** 30,
      MemorySwap: 2 ** 30,
      NanoCpus: 5e8,
      PidsLimit: 100,
      Mounts: [
        { Type: 'volume', Source: 'baton-env_1', Target: '/environment' },
        { Type: 'bind', Source: '/modules', Target: '/program', ReadOnly: true },
      ],
    },
  })
  t.notOk('NetworkMode' in (created['HostConfig'] ?? {}), "the engine's default network")
  t.ok((created['Env'] as unknown as string[]).includes(`SERVICE_API_KEY=${SECRET}`))
  t.notMatch(JSON.stringify([created['Cmd'], created['Entrypoint'], created['Labels']]), SECRET)
})

t.test('a refusal of the engine is shown without the credential', async (t) => {
  const { provider, calls } = await engine(t, (call) => {
    if (call === 'POST /containers/create') return json({ Id: 'c1' }, 201)
    if (call === 'POST /containers/c1/start')
      return json({ message: `bad variable SERVICE_API_KEY=${SECRET}` }, 400)
    return
  })
  await t.rejects(provider.startWorker(task, launch, signal), {
    message: 'The container engine refused: bad variable SERVICE_API_KEY=[redacted]',
  })
  t.ok(calls.includes('DELETE /containers/c1'), 'what was created is removed')
})

t.test('a start removes older containers, and gives way to a newer one', async (t) => {
  const listed = [
    { Id: 'old', State: 'running', Labels: labels(1) },
    { Id: 'preparation', State: 'exited', Labels: labels() },
    { Id: 'foreign', State: 'running', Labels: { ...labels(1), 'baton.installation': 'org_2' } },
    { Id: 'other', State: 'running', Labels: { ...labels(1), 'baton.environment': 'env_2' } },
  ]
  const { provider, calls } = await engine(t, (call) => {
    if (call === 'GET /containers/json') return json(listed)
    if (call === 'POST /containers/create') return json({ Id: 'c1' }, 201)
    return
  })
  await provider.startWorker(task, launch, signal)
  const removed = () => calls.filter((call) => call.startsWith('DELETE'))
  t.strictSame(removed(), ['DELETE /containers/old', 'DELETE /containers/preparation'])
  listed.unshift({ Id: 'newer', State: 'running', Labels: labels(3) })
  await t.rejects(provider.startWorker(task, launch, signal), { message: /newer worker/ })
  t.equal(removed().length, 2)
})

t.test('a missing image is downloaded, and the reason of a failure is shown', async (t) => {
  let error: string | undefined
  const { provider, calls } = await engine(t, (call) => {
    if (call === 'GET /images/image:1/json') return json({ message: 'no such image' }, 404)
    if (call === 'POST /images/create') return json(error ? { error } : { status: 'done' })
    if (call === 'POST /containers/create') return json({ Id: 'c1' }, 201)
    if (call === 'POST /containers/c1/wait') return json({ StatusCode: 0 })
    return
  })
  await provider.provision(task, signal)
  t.ok(calls.indexOf('POST /images/create') < calls.indexOf('POST /containers/create'))
  t.equal(calls.at(-1), 'DELETE /containers/c1', 'the preparation leaves no container')
  error = 'manifest "unknown"'
  await t.rejects(provider.provision(task, signal), {
    message: 'The image image:1 cannot be downloaded: manifest "unknown"',
  })
})

t.test('the end of a worker is reported once, also after an interruption', async (t) => {
  let state = { Running: true, ExitCode: 0, OOMKilled: false }
  const streams: ServerResponse[] = []
  let opened = () => {}
  const { provider } = await engine(t, (call, _, response) => {
    if (call === 'POST /containers/create') return json({ Id: 'c1' }, 201)
    if (call === 'GET /containers/c1/json') return json({ State: state })
    if (call !== 'GET /events') return
    response.writeHead(200).flushHeaders()
    streams.push(response)
    opened()
    return 'handled'
  })
  const exits: WorkerExit[] = []
  const next = () =>
    new Promise<void>((done) =>
      provider.onExit((exit) => {
        exits.push(exit)
        done()
      }),
    )
  const reopened = new Promise<void>((done) => {
    opened = () => streams.length > 1 && done()
  })
  await provider.startWorker(task, launch, signal)
  const first = next()
  streams[0]?.destroy()
  await reopened
  // One event is about another container, and one arrives in two chunks.
  const events = `{"id":"c0","time":1}\n{"id":"c1","time":2}\n{"id":"c1","time":2}\n`
  state = { Running: false, ExitCode: 137, OOMKilled: true }
  streams.at(-1)?.write(events.slice(0, 30))
  streams.at(-1)?.write(events.slice(30))
  await first
  t.strictSame(exits, [
    {
      project: 'prj_1',
      environment_id: 'env_1',
      generation: 2,
      idle: false,
      exit_code: 137,
      error: 'The worker exceeded its memory limit.',
    },
  ])
  // If no event arrives, a comparison with the engine's list of containers detects the end of the
  // worker.
  state = { Running: true, ExitCode: 0, OOMKilled: false }
  await provider.startWorker(task, { ...launch, generation: 3 }, signal)
  await provider.inspect()
  t.equal(exits.length, 1, 'a list that is older than the container proves nothing')
  state = { ...state, Running: false }
  await provider.inspect()
  t.match(exits.slice(1), [{ generation: 3, idle: true, exit_code: 0 }])
})

t.test('an aborted operation ends its request', async (t) => {
  const { provider } = await engine(t, (call) =>
    call === 'GET /volumes/baton-env_1' ? 'handled' : undefined,
  )
  const abort = new AbortController()
  const started = provider.startWorker(task, launch, abort.signal)
  abort.abort()
  await t.rejects(started, { message: 'The operation was aborted.' })
})

t.test('output is decoded however it is divided', async () => {
  const frame = (text: string) => {
    const header = Buffer.alloc(8)
    header.writeUInt32BE(Buffer.byteLength(text), 4)
    return Buffer.concat([header, Buffer.from(text)])
  }
  fc.assert(
    fc.property(fc.array(fc.string()), fc.array(fc.nat(40)), (texts, cuts) => {
      let output = Buffer.alloc(0)
      const decode = createOutputDecoder((part) => {
        output = Buffer.concat([output, part])
      })
      let rest = Buffer.concat(texts.map(frame))
      for (const cut of cuts) {
        decode(rest.subarray(0, cut))
        rest = rest.subarray(cut)
      }
      decode(rest)
      return output.toString() === texts.join('')
    }),
  )
})

t.test('the end of a log has at most the wanted lines and bytes', async (t) => {
  const line = fc.string({ unit: fc.constantFrom('a', 'ä', '€', '😀', '\n'), maxLength: 30 })
  fc.assert(
    fc.property(
      fc.array(line),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 4, max: 60 }),
      (parts, lines, bytes) => {
        const whole = parts.join('')
        const tail = createTail(lines, bytes)
        for (const part of parts) tail.add(Buffer.from(part))
        const { content, truncated } = tail.end()
        const complete = content.split('\n').length - (content.endsWith('\n') ? 1 : 0)
        return (
          whole.endsWith(content) &&
          Buffer.byteLength(content) <= bytes &&
          (content === '' || complete <= lines) &&
          truncated === content.length < whole.length
        )
      },
    ),
  )
  const all = createTail(2, 100)
  all.add(Buffer.from('one\ntwo\nthree\n'))
  t.strictSame(all.end(), { content: 'two\nthree\n', truncated: true })
})
