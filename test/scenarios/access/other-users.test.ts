/**
 * Isolation from other users of the same machine: they can read no data file of a running service
 * and cannot use its NATS server. The tests that switch to another user require root and are
 * otherwise reported as skipped.
 */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { keptSeed } from '../../../nodes/nats/server/identity.ts'
import { privateFiles, privateFolder, writePrivate } from '../../../nodes/storage/private.ts'
import { service } from '../../support/service.ts'
import { listOf, waiting } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
await s.ok('run.start', { spec: waiting() })
// The data folder of the test service is private, but that of an installation may be accessible.
// The test therefore makes the folder accessible to all users.
chmodSync(s.data, 0o755)

const all = readdirSync(s.data, { recursive: true, encoding: 'utf8' }).map((name) =>
  join(s.data, name),
)
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)
const seed = keptSeed(join(s.data, 'nats')) ?? ''

t.test('folders have mode 0700 and files 0600', async (t) => {
  t.ok(all.some((path) => path.endsWith('.sqlite')))
  for (const name of ['root.key', 'owner.json', 'nats.conf', 'nats.pid', 'client.nk'])
    t.ok(
      all.some((path) => path.endsWith(`/${name}`)),
      name,
    )
  const open = all.filter((path) => !/^[67]00$/.test(modeOf(path)))
  t.strictSame(
    open.map((path) => `${path} ${modeOf(path)}`),
    [],
  )
})

t.test('the modes of files and folders from earlier releases are restricted', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-private-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const views = join(folder, 'views')
  mkdirSync(views)
  for (const name of ['a.sqlite', 'b.json']) writeFileSync(join(views, name), 'x', { mode: 0o644 })
  chmodSync(views, 0o755)
  privateFiles(views)
  writePrivate(join(views, 'b.json'), 'y')
  t.equal(modeOf(views), '700')
  t.strictSame(
    ['a.sqlite', 'b.json'].map((name) => modeOf(join(views, name))),
    ['600', '600'],
  )
  t.equal(readFileSync(join(views, 'b.json'), 'utf8'), 'y')
  const shared = join(folder, 'shared')
  mkdirSync(shared)
  chmodSync(shared, 0o1777)
  privateFolder(shared)
  t.equal(modeOf(shared), '777', 'a folder such as /tmp keeps its mode')
})

const noProc = process.platform !== 'linux' && 'SKIPPED: this machine has no /proc'
t.test(
  'the NATS credential is in no command line and in no environment variable',
  { skip: noProc },
  async (t) => {
    t.match(seed, /^SU/)
    for (const what of ['cmdline', 'environ'])
      t.notMatch(readFileSync(`/proc/${s.server.pid}/${what}`, 'utf8'), seed, what)
    t.notMatch(readFileSync(join(s.data, 'nats', 'nats.conf'), 'utf8'), seed)
  },
)

/**
 * The program of the other user. It tries to read each path. Then it connects to the NATS server
 * without a credential and sends commands without waiting for the reply to CONNECT.
 */
const intruder = `
const fs = require('node:fs'), net = require('node:net')
const [port, ...paths] = process.argv.slice(1)
const read = paths.filter((path) => {
  try {
    fs.statSync(path).isDirectory() ? fs.readdirSync(path) : fs.readFileSync(path)
    return true
  } catch { return false }
})
let heard = ''
const socket = net.connect(Number(port), '127.0.0.1')
socket.on('data', (data) => {
  const first = heard === ''
  heard += data
  if (first) socket.write('CONNECT {"verbose":false,"headers":true,"no_responders":true}\\r\\nSUB > 1\\r\\n' +
    'PUB $JS.API.STREAM.DELETE.JOURNAL_0 x 0\\r\\n\\r\\nPUB $JS.API.STREAM.MSG.GET.KV_CONFIG x 42\\r\\n' +
    '{"last_by_subj":"$KV.CONFIG.installation"}\\r\\nPING\\r\\n')
})
socket.on('error', () => {})
socket.on('close', () => console.log(JSON.stringify({ uid: process.getuid(), read, heard })))
setTimeout(() => socket.destroy(), 4000)
`
const NOBODY = 65_534

const notRoot =
  process.getuid?.() !== 0 && 'SKIPPED: only root can become another user; run this test as root'
t.test(
  'another user can read no file and execute no NATS command',
  { skip: notRoot },
  async (t) => {
    const child = spawn(process.execPath, ['-e', intruder, String(s.server.port), ...all], {
      uid: NOBODY,
      gid: NOBODY,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let out = ''
    child.stdout.on('data', (data) => {
      out += String(data)
    })
    await new Promise((done) => child.once('close', done))
    const { uid, read, heard } = JSON.parse(out) as { uid: number; read: string[]; heard: string }
    t.equal(uid, NOBODY)
    t.strictSame(read, [])
    t.match(heard, /^INFO /)
    t.match(heard, /-ERR 'Authorization Violation'/)
    // Only the starts of lines are checked, because the random keys in the INFO line may contain
    // these words.
    t.notMatch(heard, /^(PONG|MSG)/m)
    t.equal(listOf(await s.ok('run.list')).length, 1, 'the journal is unchanged')
  },
)
