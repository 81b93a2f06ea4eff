/**
 * The first hour of a new user, with real processes: a port that is in use, invalid folders and
 * variables, a server that is killed, and the ways to stop the service.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../support/ports.ts'
import { until } from '../support/given.ts'

const root = join(import.meta.dirname, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'baton-first-hour-'))
const running = new Set<ChildProcess>()
t.teardown(async () => {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill('SIGTERM')
      await new Promise((done) => child.once('exit', done))
    }),
  )
  rmSync(folder, { recursive: true, force: true })
})

interface Started {
  readonly child: ChildProcess
  output(): string
  readonly exited: Promise<number | string>
}
/**
 * Starts the program as a user does. Of the `BATON_` variables, only `BATON_NATS_SERVER` is
 * inherited.
 */
function start(
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  command = process.execPath,
): Started {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^BATON_(?!NATS_SERVER$)|^npm_/.test(name)),
  )
  const child = spawn(command, args, {
    cwd: root,
    env: { ...env, BATON_DRAIN: '0', BATON_SYNC: '2m', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  const exited = new Promise<number | string>((done) => {
    child.once('exit', (code, signal) => {
      running.delete(child)
      done(code ?? signal ?? '')
    })
  })
  return { child, output: () => text, exited }
}
const serve = (data: string, port: number, more: Readonly<Record<string, string>> = {}): Started =>
  start(['nodes/boot.mjs', 'start'], { BATON_DATA: data, BATON_PORT: String(port), ...more })
const healthy = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
const ready = (port: number) => until(() => healthy(port), Boolean)
/** Returns the process ids of the Baton server that uses a data folder, and of its NATS server. */
const owners = (data: string): { owner: number; server: number } => {
  const { owner, server } = JSON.parse(readFileSync(join(data, 'nats', 'owner.json'), 'utf8')) as {
    owner: { pid: number }
    server: { pid: number }
  }
  return { owner: owner.pid, server: server.pid }
}
const lives = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
const gone = (...pids: readonly number[]) =>
  until(
    async () => pids.filter(lives),
    (left) => left.length === 0,
  )

t.test('an invalid start is reported in one sentence', async (t) => {
  const port = await freePort()
  const file = join(folder, 'a-file')
  writeFileSync(file, '')
  const inFile = serve(file, port)
  const misspelt = serve(join(folder, 'x'), port, { BATON_PROT: '9000' })
  const wrong = serve(join(folder, 'y'), port, { BATON_REPLICAS: '2' })
  t.equal(await inFile.exited, 1)
  t.match(
    inFile.output(),
    /^The data folder .*a-file cannot be used: a file is at this path\. .*BATON_DATA.*\n$/,
  )
  t.equal(await misspelt.exited, 2)
  t.match(misspelt.output(), /BATON_PROT is not a setting\. Did you mean BATON_PORT\?/)
  t.equal(await wrong.exited, 2)
  t.match(wrong.output(), /BATON_REPLICAS is "2": it must be 1, 3 or 5/)
})

/** The data folder of the server that the next two tests share. */
const data = join(folder, 'first')
const port = await freePort()
let first: Started

t.test('a start on a port that is in use is rejected', async (t) => {
  first = serve(data, port)
  await ready(port)
  const second = serve(join(folder, 'second'), port)
  t.equal(await second.exited, 1)
  const said = second
    .output()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{'))
  t.equal(said.length, 1, said.join('\n'))
  t.match(said[0], /^Port \d+ of 127\.0\.0\.1 is in use, perhaps by another Baton: .*BATON_PORT/)
  t.ok(await healthy(port), 'the first server is still ready')
  const again = serve(data, await freePort())
  t.equal(await again.exited, 1)
  t.match(again.output(), /is already running with the data in .*BATON_DATA/)
})

t.test('a killed server is restarted with the same key and runs', async (t) => {
  const key = readFileSync(join(data, 'root.key'), 'utf8').trim()
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const runs = `http://127.0.0.1:${port}/v1/projects/default/runs`
  const spec = { steps: [{ kind: 'sleep', config: { duration: '1h' } }] }
  const answer = await fetch(runs, { method: 'POST', headers, body: JSON.stringify({ spec }) })
  const { id } = (await answer.json()) as { id: string }
  const before = owners(data)
  process.kill(before.owner, 'SIGKILL')
  await gone(before.owner, before.server)
  await ready(port)
  const after = owners(data)
  t.not(after.owner, before.owner)
  t.match(first.output(), /Baton exited with signal SIGKILL\. It is restarted in 1 s \(1 of 5\)/)
  t.equal((await fetch(`${runs}/${id}`, { headers })).status, 200)
  first.child.kill('SIGTERM')
  t.equal(await first.exited, 0)
  await gone(after.owner, after.server)
})

t.test('npm start stops gracefully on SIGTERM, and when npm is killed', async (t) => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const port = await freePort()
    const data = join(folder, `npm-${signal}`)
    const settings = { BATON_DATA: data, BATON_PORT: String(port) }
    const npm = start(['start', '--silent'], settings, 'npm')
    await ready(port)
    const { owner, server } = owners(data)
    npm.child.kill(signal)
    await npm.exited
    await gone(owner, server)
    t.notMatch(npm.output(), /is restarted/, signal)
  }
})
