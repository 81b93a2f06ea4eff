/**
 * `baton env` against a real service, with the worker of an environment as a process: a shell on a
 * terminal and in a script, copies, and logs. A host with a provider in memory starts the worker.
 * Commands that need neither standard input nor a stream of output run in this process.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openTerminal } from '../../../client/environment/terminal.ts'
import { programArguments } from '../../../nodes/commands/child.ts'
import type { WorkerLaunch } from '../../../nodes/hosts/provider.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'
import { until } from '../support/given.ts'
import { startTestHost } from '../support/hosts.ts'

const folder = t.testdir({ workspace: {}, local: {}, logs: {} })
const s = await service({ BATON_SHARDS: '2' })
t.teardown(() => s.stop())
// A node that is alone in its cluster sends messages only within its own process, so they would not
// reach the test host, which has a separate NATS connection. Therefore, a second node is added.
await s.add({ BATON_ROLES: 'gateway' })
const args = programArguments()

const startWorker = (launch: WorkerLaunch, end: (idle: boolean) => void) => {
  const child = spawn(process.execPath, [...args, 'environment-worker'], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      ...launch.variables,
      [launch.url_variable]: s.url,
      [launch.workspace_variable]: join(folder, 'workspace'),
      [launch.log_variable]: join(folder, 'logs'),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  child.once('exit', () => end(true))
  return { kill: () => void child.kill('SIGKILL') }
}
class LocalPlace extends MemoryPlace {
  override provider() {
    return { ...super.provider(), name: 'local' }
  }
}
const place = new LocalPlace('memory/shell', startWorker)
const host = await startTestHost(s.server.access, place, 'shell-host')
t.teardown(() => host.stop())
const { id } = (await s.ok('environment.create', { name: 'desk' })) as unknown as { id: string }
t.teardown(() => place.environments.get(id)?.worker?.process.kill())
await until(
  () => s.ok('environment.get', { environment_id: id }),
  ({ status }) => status === 'ready',
)

const variables = { PATH: process.env['PATH'] ?? '', BATON_URL: s.url, BATON_KEY: s.key }
interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}
const env = (words: readonly string[], input = ''): Promise<Ended> =>
  new Promise((done) => {
    const child = spawn(process.execPath, [...args, 'env', ...words], {
      env: { ...variables, HOME: folder },
      cwd: join(folder, 'local'),
    })
    const read = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (data: Buffer) => {
        read[name] += data
      })
    child.once('close', (code) => done({ code, ...read }))
    child.stdin.end(input)
  })
const run = commandRunner(s, folder)
/**
 * Runs a command in this process. Local paths in its arguments must be absolute, because this
 * process has a different working folder.
 */
const inProcess = async (...words: readonly string[]): Promise<Ended> => {
  const { code, out, notes } = await run(['env', ...words])
  return { code, stdout: out, stderr: notes }
}

t.test('a command starts the worker, and its output and exit code are passed on', async (t) => {
  const ended = await env([
    'shell',
    'desk',
    '--',
    'bash',
    '-c',
    'echo "$1"; pwd; exit 7',
    'x',
    'a  b',
  ])
  t.strictSame(
    { code: ended.code, stdout: ended.stdout },
    { code: 7, stdout: `a  b\n${join(folder, 'workspace')}\n` },
    ended.stderr,
  )
})

t.test('input is piped to a command or a script', async (t) => {
  const counted = await env(['shell', 'desk', '--', 'wc', '-l'], 'a\nb\nc\n')
  t.match(counted, { code: 0, stdout: /^\s*3\n$/ })
  const script = await env(['shell', id], 'x=5\necho $((x * 2))\nexit 3')
  t.match(script, { code: 3, stdout: '10\n' })
})

t.test('a line that a terminal would cut is refused', async (t) => {
  const longest = `${'x'.repeat(4095)}\n`
  t.match(await env(['shell', 'desk', '--', 'wc', '-c'], longest), { code: 0, stdout: /^4096\n/ })
  const refused = await env(['shell', 'desk', '--', 'wc', '-c'], `a\nx${longest}`)
  t.match(refused, { code: 1, stderr: /^Line 2 of the input has more than 4095 bytes\. Copy / })
})

t.test('much output arrives whole', async (t) => {
  const ended = await env(['shell', 'desk', '--', 'seq', '1', '200000'])
  t.equal(ended.code, 0)
  t.equal(ended.stdout.length, 1_288_895)
  t.ok(ended.stdout.endsWith('199999\n200000\n'))
})

t.test('a terminal passes on keys, Ctrl-C, its size and the exit code', async (t) => {
  const terminal = await openTerminal({
    command: [process.execPath, ...args, 'env', 'shell', 'desk'],
    columns: 90,
    rows: 30,
    env: { ...variables, HOME: folder },
    cwd: folder,
  })
  let shown = ''
  terminal.onData((data) => {
    shown += Buffer.from(data).toString()
  })
  const exited = new Promise<number>((done) => terminal.onExit(({ exit_code }) => done(exit_code)))
  const shows = (text: string | RegExp) =>
    until(
      async () => shown,
      (all) => all.search(text) >= 0,
    )
  await shows(/[$#] /)
  terminal.write('stty size; echo is-$((20+3))\r')
  await shows('is-23')
  t.match(shown, /30 90/)
  terminal.write('sleep 1000; echo after\r')
  await shows('sleep 1000')
  terminal.write('\u0003')
  terminal.resize(100, 40)
  // The new size is sent separately from the keys, and may arrive after them.
  await until(
    async () => {
      terminal.write('stty size\r')
      return shown
    },
    (all) => /40 100/.test(all),
  )
  terminal.write('exit 5\r')
  t.equal(await exited, 5)
})

t.test('files are copied in both directions', async (t) => {
  const local = join(folder, 'local')
  const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, n) => (n * 31 + (n >> 8)) % 256))
  writeFileSync(join(local, 'big.bin'), bytes, { mode: 0o755 })
  writeFileSync(join(local, 'small.txt'), 'hällo')
  t.equal((await env(['cp', 'big.bin', 'desk:a/b c/'])).code, 0)
  t.ok(readFileSync(join(folder, 'workspace/a/b c/big.bin')).equals(bytes))
  t.strictSame(readdirSync(join(folder, 'workspace/a/b c')), ['big.bin'], 'no parts are left')
  const small = join(local, 'small.txt')
  t.equal((await inProcess('cp', small, `${id}:note.txt`)).code, 0)
  mkdirSync(join(local, 'back'))
  t.equal((await env(['cp', 'desk:a/b c/big.bin', 'back'])).code, 0)
  t.ok(readFileSync(join(local, 'back/big.bin')).equals(bytes))
  t.equal((await inProcess('cp', 'desk:note.txt', join(local, 'back/n.txt'))).code, 0)
  t.equal(readFileSync(join(local, 'back/n.txt'), 'utf8'), 'hällo')
  const missing = await inProcess('cp', 'desk:none.txt', join(local, 'back/none.txt'))
  t.match(missing, { code: 1, stderr: /none\.txt/ })
  t.strictSame(readdirSync(join(local, 'back')).sort(), ['big.bin', 'n.txt'])
  t.match(await inProcess('cp', small, join(local, 'back')), {
    code: 1,
    stderr: /must be in an environment/,
  })
  rmSync(join(local, 'back'), { recursive: true })
})

t.test('the list, the logs, and a name that does not exist', async (t) => {
  place.logs.set(id, 'one\ntwo\n')
  t.match(JSON.parse((await inProcess('list')).stdout), { items: [{ id, name: 'desk' }] })
  t.match(await inProcess('logs', 'desk', '--tail', '1'), { code: 0 })
  t.match(await inProcess('logs', 'desk'), { stdout: 'one\ntwo' })
  const child = spawn(process.execPath, [...args, 'env', 'logs', 'desk', '-f'], {
    env: { ...variables, HOME: folder },
  })
  const ended = new Promise((done) => child.once('close', done))
  t.teardown(() => child.kill())
  let shown = ''
  child.stdout.on('data', (data: Buffer) => {
    shown += data
  })
  await until(
    async () => shown,
    (all) => all === 'one\ntwo\n',
  )
  place.logs.set(id, 'one\ntwo\nthree\u001b]0;title\u0007\n')
  await until(
    async () => shown,
    (all) => all.length > 8,
  )
  t.equal(shown, 'one\ntwo\nthree\n', 'only the added line, without its control sequence')
  child.kill()
  await ended
  t.match(await inProcess('shell', 'desc'), { code: 1, stderr: /Did you mean "desk"/ })
})
