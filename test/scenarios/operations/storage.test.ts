/**
 * Storage faults. On a full disk of 64 MiB, reads continue, writes are rejected with a reason, and
 * no acknowledged run is lost. When a block of the journal is truncated, writes stop and the reason
 * is reported. The disk is a tmpfs, which only root may mount.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { type Child, startNodeProcess } from '../../../nodes/commands/child.ts'
import { freePort } from '../../support/ports.ts'
import { instant } from '../support/given.ts'

type Json = Readonly<Record<string, unknown>>
interface Answer {
  readonly status: number
  readonly code: string
  readonly body: Json
  readonly ms: number
}
const root = process.getuid?.() === 0 && process.platform === 'linux'
const skip = root ? false : 'SKIPPED: it needs root, to mount a tmpfs'
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/**
 * Mounts a tmpfs of 64 MiB. Returns functions that start, stop and call a service whose data is all
 * on this disk.
 */
async function onSmallDisk() {
  const disk = mkdtempSync(join(tmpdir(), 'baton-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', disk])
  const port = await freePort()
  const key = `bat_${'s'.repeat(32)}`
  let child: Child | undefined
  const start = async (): Promise<void> => {
    child = startNodeProcess('storage', {
      BATON_DATA: join(disk, 'data'),
      BATON_PORT: String(port),
      BATON_ROOT_KEY: key,
      BATON_SHARDS: '2',
      BATON_DRAIN: '1',
      BATON_RATE_KEY: '0',
      BATON_RATE_ORG: '0',
      BATON_LOG_LEVEL: process.env['BATON_TEST_LOG'] ?? 'silent',
    })
    await child.ready
  }
  const end = async (signal: NodeJS.Signals): Promise<number> => {
    const started = performance.now()
    child?.kill(signal)
    await child?.exited
    return performance.now() - started
  }
  t.teardown(async () => {
    await end('SIGKILL')
    // A killed process leaves its NATS server running until the next start, which does not happen
    // here.
    for (const pid of serversOf(disk)) process.kill(pid, 'SIGKILL')
    await pause(200)
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true, force: true })
  })
  const ask = async (method: string, path: string, body?: Json): Promise<Answer> => {
    const started = performance.now()
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    })
    const text = await answer.text()
    const parsed = (text.startsWith('{') ? JSON.parse(text) : { text }) as Json
    const { code = '' } = (parsed['error'] ?? {}) as { code?: string }
    return { status: answer.status, code, body: parsed, ms: performance.now() - started }
  }
  const project = '/v1/projects/default'
  const write = (bytes = 24_000): Promise<Answer> =>
    ask('POST', `${project}/runs`, {
      spec: instant(),
      input: { text: randomBytes(bytes).toString('base64') },
    })
  const until = async (
    what: string,
    within: number,
    look: () => Promise<Answer>,
    match: (answer: Answer) => boolean,
  ): Promise<Answer> => {
    for (const by = performance.now() + within; ; await pause(100)) {
      const answer = await look()
      if (match(answer)) return answer
      if (performance.now() > by)
        throw new Error(`${what}: not within ${within} ms, but ${JSON.stringify(answer)}`)
    }
  }
  /**
   * Occupies disk space with a file.
   * @param bytes the size of the file; by default all remaining space.
   */
  const fill = (bytes = Number.POSITIVE_INFINITY): void => {
    const file = openSync(join(disk, 'others'), 'w')
    const piece = Buffer.alloc(4096)
    try {
      for (let written = 0; written < bytes; written += piece.length) writeSync(file, piece)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    } finally {
      closeSync(file)
    }
  }
  return {
    disk,
    project,
    start,
    end,
    ask,
    write,
    until,
    fill,
    free: () => rmSync(join(disk, 'others')),
    left: () => statfsSync(disk).bavail * statfsSync(disk).bsize,
    /** Returns the runs that cannot be read, each with the response. */
    lost: async (ids: readonly string[]): Promise<string[]> => {
      const lost: string[] = []
      for (const id of ids) {
        const found = await ask('GET', `${project}/runs/${id}`)
        if (found.status !== 200) lost.push(`${id}: ${JSON.stringify(found)}`)
      }
      return lost
    },
  }
}
/** Returns the process ids of the NATS servers whose configuration is stored on the given disk. */
function serversOf(disk: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return words.includes('nats-server') && words.includes(disk)
      } catch {
        return false
      }
    })
    .map(Number)
}
const isRun = ({ status }: Answer): boolean => status === 200 || status === 201 || status === 202
const reasonsOf = ({ body }: Answer): string => JSON.stringify(body['reasons'] ?? body['warnings'])

t.setTimeout(170_000)
// Each test continues with the installation that the previous test left.
const it = root ? await onSmallDisk() : undefined
await it?.start()
t.test('reads are served on a disk that other data has filled completely', { skip }, async (t) => {
  if (!it) return
  const ids: string[] = []
  for (let i = 0; i < 20; i++) ids.push(String((await it.write(1000)).body['id']))
  it.fill()
  const full = await it.until(
    'a refusal',
    15_000,
    () => it.write(1000),
    ({ code }) => code === 'storage_full',
  )
  t.equal(full.status, 503)
  // A view with unsaved changes answers only after the service has deleted the file that reserves
  // disk space. This may take up to a second.
  const list = () => it.ask('GET', `${it.project}/runs`)
  await it.until('lists are served', 5000, list, ({ status }) => status === 200)
  t.strictSame(await it.lost(ids), [], 'reads continue')
  t.match(reasonsOf(await it.ask('GET', '/readyz')), /storage: /)
  const took = await it.end('SIGTERM')
  t.ok(took < 6000, `it stops within ${took.toFixed(0)} ms, with a drain of 1 s`)

  await it.start()
  t.match({ ...(await it.write(1000)) }, { status: 503, code: 'storage_full' })
  t.strictSame(await it.lost(ids), [], 'reads are served after a start on a full disk')
  t.match(reasonsOf(await it.ask('GET', '/readyz')), /storage: /)

  it.free()
  // The shards accept writes again one after the other, and each run has a random shard.
  const writes = async (): Promise<Answer> => {
    let answer = await it.write(1000)
    for (let i = 1; i < 40 && isRun(answer); i++) answer = await it.write(1000)
    return answer
  }
  await it.until('writes after space was made', 10_000, writes, isRun)
})

t.test('the service stops writes before its own load fills the disk', { skip }, async (t) => {
  if (!it) return
  it.fill(36 * 2 ** 20)
  const ids: string[] = []
  let refusal: Answer | undefined
  let warned = ''
  const client = async () => {
    while (!refusal) {
      // The load is slow enough that the disk cannot become full between two measurements of its
      // usage, even though the server writes more data in the seconds after an entry.
      const answer = await it.write(12_000)
      if (isRun(answer)) ids.push(String(answer.body['id']))
      else refusal = answer
      await pause(60)
    }
  }
  const watcher = async () => {
    for (; !refusal; await pause(100)) {
      const ready = await it.ask('GET', '/readyz')
      if (ready.status === 200 && ready.body['warnings']) warned = reasonsOf(ready)
    }
  }
  await Promise.all([watcher(), ...Array.from({ length: 2 }, client)])
  t.match({ ...refusal }, { status: 503, code: 'storage_full' })
  t.match(warned, /storage: /, 'a warning comes first')
  t.ok(it.left() > 0, 'space is left on the disk')

  const refused = await it.write()
  t.match({ ...refused }, { status: 503, code: 'storage_full' })
  t.ok(refused.ms < 2000, `refused in ${refused.ms.toFixed(0)} ms`)
  const ready = await it.ask('GET', '/readyz')
  t.equal(ready.status, 503)
  t.match(reasonsOf(ready), /storage: /)
  t.equal((await it.ask('GET', '/readyz?for=reads')).status, 200, 'reads are served')
  t.match(
    (await it.ask('GET', '/metrics')).body['text'],
    /baton_writes_stopped\{reason="storage_full"\} 1/,
  )
  const last = ids.at(-1) ?? ''
  t.match(await it.ask('GET', `${it.project}/runs/${last}`), { status: 200, body: { id: last } })
  t.equal((await it.ask('GET', `${it.project}/runs`)).status, 200, 'lists are served')

  it.free()
  const again = await it.until('a write after space was made', 10_000, it.write, isRun)
  ids.push(String(again.body['id']))
  await it.until(
    'readiness',
    10_000,
    () => it.ask('GET', '/readyz'),
    ({ status }) => status === 200,
  )
  await it.end('SIGKILL')
  await it.start()
  t.strictSame(await it.lost(ids), [], `none of ${ids.length} is lost`)
})

t.test('a truncated journal block stops writes and is reported', { skip }, async (t) => {
  if (!it) return
  for (let i = 0; i < 40; i++) await it.write(4000)
  await pause(2500)
  await it.end('SIGTERM')
  const folder = execFileSync('find', [it.disk, '-path', '*JOURNAL_0/msgs'], { encoding: 'utf8' })
  const blocks = readdirSync(folder.trim()).filter((name) => name.endsWith('.blk'))
  const newest = join(folder.trim(), blocks.sort().at(-1) ?? '')
  truncateSync(newest, Math.floor(statSync(newest).size / 2))

  await it.start()
  const ready = await it.until(
    'a reason',
    10_000,
    () => it.ask('GET', '/readyz'),
    (answer) => /journal: /.test(reasonsOf(answer)),
  )
  t.equal(ready.status, 503)
  const refused = await it.write(1000)
  t.match({ ...refused }, { status: 503, code: 'journal_damaged' })
  t.ok(refused.ms < 2000, `refused in ${refused.ms.toFixed(0)} ms`)
  t.match(
    (await it.ask('GET', '/metrics')).body['text'],
    /baton_writes_stopped\{reason="journal_damaged"\} 1/,
  )
})
