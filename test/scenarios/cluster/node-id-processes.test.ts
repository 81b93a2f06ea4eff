/**
 * Two processes with the same node id start at the same moment. One serves requests. The other
 * exits with an error that says that another node is running with this id.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { programArguments } from '../../../nodes/commands/child.ts'
import { natsServers, settingsFor } from '../support/clusters.ts'

t.setTimeout(180_000)
const folder = mkdtempSync(join(tmpdir(), 'baton-node-id-'))
const servers = await natsServers(join(folder, 'nats'), 1)
t.teardown(async () => {
  await Promise.all(servers.map((server) => server.stop()))
  rmSync(folder, { recursive: true, force: true })
})

interface Started {
  readonly pid: number
  /** `serves`, or the exit code with the text of standard error. */
  readonly outcome: Promise<string>
  readonly exited: Promise<string>
  kill(signal: NodeJS.Signals): void
}
let started = 0
function start(): Started {
  const child = spawn(process.execPath, [...programArguments(), 'node'], {
    env: {
      ...process.env,
      ...settingsFor(servers),
      BATON_NODE_ID: 'same',
      BATON_ROLES: 'shards',
      BATON_DATA: join(folder, String(started++)),
      BATON_ROOT_KEY: `bat_${'i'.repeat(32)}`,
      BATON_LOG_LEVEL: 'silent',
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const exited = new Promise<string>((done) =>
    child.once('close', (code, signal) => done(`${signal ?? code}: ${text}`)),
  )
  const ready = new Promise<string>((done) =>
    child.on('message', (message) => {
      if (message === 'ready') done('serves')
    }),
  )
  return {
    pid: child.pid ?? 0,
    outcome: Promise.race([ready, exited]),
    exited,
    kill: (signal) => void child.kill(signal),
  }
}

t.test('of two processes with one node id, only one serves until it ends', async (t) => {
  const both = [start(), start()]
  const outcomes = await Promise.all(both.map(({ outcome }) => outcome))
  const at = outcomes.indexOf('serves')
  const [winner, loser] = [both[at], both[1 - at]]
  if (!winner || !loser) return t.fail(outcomes.join('; '))
  const end = await loser.exited
  t.match(end, /^1: another node is running with the id same/)
  t.match(end, /: set a different BATON_NODE_ID for each node, or none\n$/)
  const third = await start().outcome
  t.match(third, /^1: another node is running with the id same/, 'it still serves')
  winner.kill('SIGKILL')
  await winner.exited
  const again = start()
  t.equal(await again.outcome, 'serves', 'a node that was killed starts again at once')
  again.kill('SIGTERM')
  t.match(await again.exited, /^0: /)
})
