/**
 * The provider `docker` on a real engine: Podman, with images built from programs on this machine.
 */
import t, { type Test } from 'tap'
import { createDockerProvider, type DockerOptions } from '../../../../nodes/hosts/docker/docker.ts'
import type { Provider, WorkerExit, WorkerLaunch } from '../../../../nodes/hosts/provider.ts'
import { systemClock } from '../../../../nodes/system.ts'
import type { HostTask } from '../../../../protocol/environments/commands.ts'
import { IMAGE, IMAGE_WITHOUT_GIT, startPodman, skip as unable } from '../../support/podman.ts'

/**
 * This file takes 40 s, so it is skipped by default. The scenario `environments/docker.test.ts`
 * always tests the life cycle.
 */
const skip = process.env['BATON_TEST_ENGINE'] ? unable : 'set BATON_TEST_ENGINE=1 to run it'
const podman = skip === false ? await startPodman([IMAGE, IMAGE_WITHOUT_GIT]) : undefined
t.teardown(() => podman?.stop())

const MIB = 1024 * 1024
let count = 0
const newTask = (): HostTask => ({
  operation: 1,
  kind: 'provision',
  project: 'prj_1',
  environment_id: `env_${++count}`,
  name: 'one',
  provider: 'docker',
  repositories: [],
})
const signal = new AbortController().signal
const SECRET = 'batenv_secret_0123456789'
const launchOf = (generation: number, program: string): WorkerLaunch => ({
  generation,
  command: ['node', '-e', program],
  variables: { SERVICE_API_KEY: SECRET },
  gateway_url: 'http://127.0.0.1:1',
  url_variable: 'SERVICE_API_URL',
  workspace_variable: 'SERVICE_RUNTIME_WORKSPACE',
  log_variable: 'SERVICE_WORKER_LOG_DIR',
  allowed_hosts: [],
})
async function open(t: Pick<Test, 'teardown'>, more: Partial<DockerOptions> = {}) {
  const provider = await createDockerProvider({
    socket: podman?.socket ?? '',
    image: IMAGE,
    network: 'host',
    installation: 'org_1',
    limits: { memory_bytes: 256 * MIB, cpus: 1, disk_bytes: 1024 * MIB, processes: 64 },
    program: { command: [], needs: ['node', 'git'], mounts: [] },
    gateway_url: 'http://127.0.0.1:1',
    clock: systemClock,
    random: () => String(++count),
    ...more,
  })
  if ('unavailable' in provider) throw new Error(provider.unavailable)
  t.teardown(() => provider.close())
  return provider
}
const nextExit = (provider: Provider) =>
  new Promise<WorkerExit>((done) => provider.onExit((exit) => done(exit)))
const names = (...list: string[]) =>
  podman
    ?.run(...list)
    .split('\n')
    .filter(Boolean) ?? []
const left = () => [
  ...names('ps', '--all', '--format', '{{.Names}}'),
  ...names('volume', 'ls', '--format', '{{.Name}}'),
]
const logOf = async (provider: Provider, id: string, log_name: 'stdout' | 'stderr' | 'worker') =>
  (await provider.logs(id, { log_name, tail: 100, max_bytes: 10_000 }))?.content ?? ''

t.test(
  'an environment is prepared, its workers run one after the other, and it is removed',
  { skip },
  async (t) => {
    const provider = await open(t)
    t.match(provider.place, /^docker\/\d+$/)
    t.match(
      provider.isolation,
      /^Container of Podman 4.*memory 256 MiB, processors 1, processes 64;/,
    )
    const task = newTask()
    const id = task.environment_id
    await provider.provision(task, signal)
    await provider.provision(task, signal)
    t.strictSame(await provider.inspect(), [{ project: 'prj_1', environment_id: id }])
    t.strictSame(
      left().filter((name) => name.includes(id)),
      [`baton-${id}`],
      'only the volume is left',
    )

    const exit = nextExit(provider)
    await provider.startWorker(
      task,
      launchOf(
        1,
        `
    const { writeFileSync, readFileSync } = require('node:fs')
    const tried = (what) => { try { what(); return 'worked' } catch (error) { return error.code } }
    writeFileSync('kept.txt', 'first worker')
    writeFileSync(process.env.SERVICE_WORKER_LOG_DIR + '/worker.log', 'line 1\\nline 2\\n')
    console.log(JSON.stringify({
      uid: process.getuid(),
      folder: process.cwd(),
      home: process.env.HOME,
      workspace: process.env.SERVICE_RUNTIME_WORKSPACE,
      url: process.env.SERVICE_API_URL,
      key: process.env.SERVICE_API_KEY,
      root: tried(() => writeFileSync('/usr/bin/evil', '')),
      etc: tried(() => writeFileSync('/etc/evil', '')),
      temporary: tried(() => writeFileSync('/tmp/file', '')),
      status: readFileSync('/proc/self/status', 'utf8').match(/(CapEff|CapBnd|NoNewPrivs|Seccomp):.*/g),
    }))
    console.error('a warning')
  `,
      ),
      signal,
    )
    t.strictSame(await exit, {
      project: 'prj_1',
      environment_id: id,
      generation: 1,
      idle: true,
      exit_code: 0,
    })
    const seen = JSON.parse(await logOf(provider, id, 'stdout'))
    t.match(seen, {
      uid: 1000,
      folder: '/environment/workspace',
      home: '/environment/home',
      workspace: '/environment/workspace',
      url: 'http://127.0.0.1:1',
      key: SECRET,
      root: 'EROFS',
      etc: 'EROFS',
      temporary: 'worked',
    })
    t.match(seen.status.join(' '), /CapBnd:\s0000000000000000/)
    t.match(seen.status.join(' '), /NoNewPrivs:\s1/)
    t.match(seen.status.join(' '), /CapEff:\s0000000000000000/)
    t.match(seen.status.join(' '), /Seccomp:\s2/)
    t.equal(await logOf(provider, id, 'stderr'), 'a warning\n')
    t.equal(await logOf(provider, id, 'worker'), 'line 1\nline 2\n', 'also of a stopped container')
    t.strictSame(await provider.logs(id, { log_name: 'worker', tail: 1, max_bytes: 100 }), {
      content: 'line 2\n',
      truncated: true,
    })
    const history = await provider.logs(id, { log_name: 'bootstrap', tail: 9, max_bytes: 10_000 })
    t.match(
      history?.content,
      /created from localhost\/baton-test:1\n.*worker 1 started\n.*exit code 0/,
    )
    t.equal(
      await provider.logs('env_none', { log_name: 'worker', tail: 1, max_bytes: 1 }),
      undefined,
    )

    const second = nextExit(provider)
    await provider.startWorker(
      task,
      launchOf(
        2,
        `
    console.log(require('node:fs').readFileSync('kept.txt', 'utf8'))
    process.exit(3)
  `,
      ),
      signal,
    )
    t.match(await second, { generation: 2, idle: false, exit_code: 3, error: /exit code 3/ })
    t.equal(await logOf(provider, id, 'stdout'), 'first worker\n', 'files outlive a worker')

    await provider.destroy(id)
    await provider.destroy(id)
    t.strictSame(await provider.inspect(), [])
    t.strictSame(left(), ['baton-place-org_1'])
  },
)

const STAYS = `console.log('runs'); setInterval(() => {}, 1000)`

t.test('a start replaces an earlier worker, and never a newer one', { skip }, async (t) => {
  const provider = await open(t)
  const task = newTask()
  const id = task.environment_id
  await provider.provision(task, signal)
  const exits: WorkerExit[] = []
  provider.onExit((exit) => exits.push(exit))
  for (const generation of [1, 2, 2])
    await provider.startWorker(task, launchOf(generation, STAYS), signal)
  t.strictSame(await provider.inspect(), [{ project: 'prj_1', environment_id: id, generation: 2 }])
  await t.rejects(provider.startWorker(task, launchOf(1, STAYS), signal), {
    message: /newer worker/,
  })
  t.strictSame(
    left().filter((name) => name === `baton-${id}`).length,
    2,
    'one volume, one container',
  )
  t.strictSame(exits, [], 'the provider ended them itself')
  await provider.destroy(id)
})

t.test(
  'another process of a host finds the running worker, and reports its end',
  { skip },
  async (t) => {
    const first = await open(t)
    const task = newTask()
    const id = task.environment_id
    await first.provision(task, signal)
    await first.startWorker(task, launchOf(1, STAYS), signal)
    await first.close()
    const second = await open(t)
    t.equal(second.place, first.place)
    t.strictSame(await second.inspect(), [{ project: 'prj_1', environment_id: id, generation: 1 }])
    const exit = nextExit(second)
    podman?.run('kill', `baton-${id}`)
    t.match(await exit, { environment_id: id, generation: 1, idle: false, exit_code: 137 })
    t.strictSame(await second.inspect(), [{ project: 'prj_1', environment_id: id }])
    const other = await open(t, { installation: 'org_2' })
    t.strictSame(await other.inspect(), [], 'another installation does not see it')
    t.not(other.place, first.place)
    await second.destroy(id)
  },
)

t.test('memory and processes are limited, and nothing outlives the worker', { skip }, async (t) => {
  const provider = await open(t)
  const task = newTask()
  const id = task.environment_id
  await provider.provision(task, signal)
  const exit = nextExit(provider)
  await provider.startWorker(
    task,
    launchOf(
      1,
      `
    const all = []
    for (;;) all.push(Buffer.alloc(16 * 1024 * 1024, 1))
  `,
    ),
    signal,
  )
  t.match(await exit, { idle: false, error: /memory limit|signal 9/ })
  const bomb = nextExit(provider)
  await provider.startWorker(
    task,
    launchOf(
      2,
      `
    const { spawn } = require('node:child_process')
    let failed = 0, begun = 0
    for (let i = 0; i < 200; i++) {
      const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
      child.on('error', () => failed++)
      if (child.pid) begun++
      child.unref()
    }
    setImmediate(() => { console.log(begun < 64, failed + begun); process.exit(1) })
  `,
    ),
    signal,
  )
  await bomb
  t.equal(await logOf(provider, id, 'stdout'), 'true 200\n')
  const output = nextExit(provider)
  await provider.startWorker(
    task,
    launchOf(
      3,
      `
    const line = Buffer.alloc(65535, 'x') + '\\n'
    for (let i = 0; i < 500; i++) require('node:fs').writeSync(1, line)
  `,
    ),
    signal,
  )
  await output
  const log = await provider.logs(id, { log_name: 'stdout', tail: 5000, max_bytes: 128_000 })
  t.equal(log?.content.length, 128_000)
  t.equal(log?.truncated, true)
  await provider.destroy(id)
})

t.test('an unusable image is reported with the reason, and leaves nothing', { skip }, async (t) => {
  const task = newTask()
  const without = await open(t, { image: IMAGE_WITHOUT_GIT })
  await t.rejects(without.provision(task, signal), {
    message: `The image ${IMAGE_WITHOUT_GIT} cannot be used: it has no program git`,
  })
  await without.destroy(task.environment_id)
  const absent = await open(t, { image: 'localhost/absent:1' })
  await t.rejects(absent.provision(task, signal), {
    message: /^The image localhost\/absent:1 cannot be downloaded: /,
  })
  const provider = await open(t)
  await t.rejects(provider.startWorker(task, launchOf(1, ''), signal), {
    message: /does not exist/,
  })
  await provider.provision(task, signal)
  const unknown = { ...launchOf(1, ''), command: ['/no/such/program'] }
  const exit = nextExit(provider)
  await provider.startWorker(task, unknown, signal)
  t.match(await exit, { idle: false, exit_code: 127 })
  await provider.destroy(task.environment_id)
  t.strictSame(
    left().filter((name) => !name.startsWith('baton-place-')),
    [],
  )
})
