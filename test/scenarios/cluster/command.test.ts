/**
 * `baton cluster`, started as a process: the settings that its gateways use, the addresses that it
 * prints, and the isolation of its environments.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { programArguments } from '../../../nodes/commands/child.ts'
import { skipped } from '../../nodes/hosts/local/stage.ts'
import { until } from '../support/given.ts'

const data = mkdtempSync(join(tmpdir(), 'baton-cluster-'))
const flags = ['--port', '0', '--rate-key', '70', '--brand', 'Acme', '--data', data]
const cluster: ChildProcess = spawn(
  process.execPath,
  [...programArguments(), 'cluster', ...flags],
  {
    env: { ...process.env, BATON_LOG_LEVEL: process.env['BATON_TEST_LOG'] ?? 'silent' },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  },
)
const exited = once(cluster, 'exit')
t.teardown(async () => {
  cluster.kill('SIGTERM')
  await exited
  rmSync(data, { recursive: true, force: true })
})

let printed = ''
cluster.stdout?.setEncoding('utf8').on('data', (text: string) => {
  printed += text
})
await until(
  async () => printed,
  (text) => text.includes('Try next:') || cluster.exitCode !== null,
)
const addresses = /^The cluster is ready: (\S+) and (\S+)$/m.exec(printed)?.slice(1) ?? []
const key = readFileSync(join(data, 'cluster', 'root.key'), 'utf8').trim()
const ask = (path: string, body?: object) =>
  fetch(`${addresses[0]}/v1/projects/default/${path}`, {
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })

t.test('the printed addresses are those of the gateways', async (t) => {
  t.equal(new Set(addresses).size, 2)
  for (const address of addresses) {
    // A gateway on a busy machine may be unready for a moment.
    const status = async () => (await fetch(`${address}/readyz`)).status
    t.equal(await until(status, (is) => is === 200), 200, address)
  }
  t.match(printed, `npm run tour -- --server ${addresses.join(',')}\n`)
})

t.test('flags apply to the gateways', async (t) => {
  const answer = await ask('runs')
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('x-ratelimit-limit'), '70')
})

t.test(
  'environments are isolated with separate users, and other data stays private',
  { skip: skipped.user },
  async (t) => {
    const made = (await (await ask('environments', { name: 'desk' })).json()) as { id: string }
    const read = async () =>
      (await (await ask(`environments/${made.id}?include=isolation`)).json()) as {
        status: string
        isolation?: string
      }
    await until(read, ({ status }) => status === 'ready' || status === 'failed')
    t.match(await read(), { status: 'ready', isolation: /user/ })
    const modeOf = (...path: string[]) => statSync(join(data, ...path)).mode & 0o777
    t.equal(modeOf(), 0o701)
    t.equal(modeOf('cluster'), 0o701)
    t.equal(modeOf('cluster', 'gateway-1'), 0o701)
    t.equal(modeOf('cluster', 'root.key'), 0o600)
    for (const name of readdirSync(join(data, 'cluster')))
      if (!['root.key', 'gateway-1'].includes(name)) t.equal(modeOf('cluster', name), 0o700, name)
    for (const { name } of readdirSync(join(data, 'cluster', 'gateway-1'), { withFileTypes: true }))
      if (name !== 'environments') t.equal(modeOf('cluster', 'gateway-1', name) & 0o077, 0, name)
  },
)
