/**
 * The daily verification of journals: its pace on a manual clock, and a truncated block in a real
 * nats-server.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, statSync, truncateSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createJournal } from '../../../nodes/nats/journal/journal.ts'
import { type Scan, scanJournal } from '../../../nodes/nats/journal/scan.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { createIdentity } from '../../../nodes/nats/server/identity.ts'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { provision } from '../../../nodes/nats/server/provision.ts'
import { startServer } from '../../../nodes/nats/server/server.ts'
import { startVerifying } from '../../../nodes/storage/verify.ts'
import { ManualClock, silentLog } from '../../support/memory.ts'

const HOUR_MS = 3_600_000

/**
 * Starts the verification of a journal of `last` entries. The entries in `bad` are not delivered.
 */
function setting(last: number, begin = 0) {
  const clock = new ManualClock()
  const bad = new Set<number>()
  const position = { first: 1, last }
  const reads: (readonly [from: number, to: number])[] = []
  const gauge: boolean[] = []
  let owned = true
  const verification = startVerifying({
    partitions: 1,
    journal: { position: async () => ({ ...position }) },
    clock,
    log: silentLog,
    metrics: { journalDamaged: (_, damaged) => void gauge.push(damaged) },
    begin,
    owns: () => owned,
    scan: async (_, from, to): Promise<Scan> => {
      reads.push([from, to])
      for (let next = from; next <= to; next++)
        if (bad.has(next)) return { next, outcome: 'silent' }
      return { next: to + 1, outcome: 'sound' }
    },
  })
  return { clock, bad, position, reads, gauge, verification, disown: () => (owned = false) }
}

t.test('every entry is read once a day, in bounded steps, from any start', async (t) => {
  for (const [last, begin, most] of [
    [1000, 0, 64],
    [1000, 0.7, 64],
    [2_000_000, 0.5, 232],
  ] as const) {
    const { clock, reads, verification } = setting(last, begin)
    await clock.advance(24 * HOUR_MS)
    const sum = reads.reduce((all, [from, to]) => all + to - from + 1, 0)
    t.equal(sum, last)
    t.ok(reads.every(([from, to]) => to - from < most && from >= 1 && to <= last))
    await verification.stop()
    await clock.advance(48 * HOUR_MS)
    t.equal(
      reads.reduce((all, [from, to]) => all + to - from + 1, 0),
      last,
      'it stopped',
    )
  }
})

t.test('an undelivered entry is reported until it is delivered or trimmed', async (t) => {
  const { clock, bad, position, gauge, verification } = setting(1000)
  for (let entry = 300; entry < 420; entry++) bad.add(entry)
  await clock.advance(60_000)
  t.same(verification.warnings(), [])
  await clock.advance(HOUR_MS)
  t.same(verification.warnings(), [
    'journal_damaged: entries of journal 0 from 300 on are not delivered',
  ])
  t.equal(gauge.at(-1), true)
  bad.clear()
  await clock.advance(25 * HOUR_MS)
  t.same(verification.warnings(), [], 'the next pass reads them')
  t.equal(gauge.at(-1), false)
  bad.add(500)
  await clock.advance(24 * HOUR_MS)
  t.equal(verification.warnings().length, 1)
  position.first = 600
  await clock.advance(24 * HOUR_MS)
  t.same(verification.warnings(), [])
})

t.test('a pause of the servers is not reported as damage', async (t) => {
  const { clock, bad, gauge, verification } = setting(1000)
  bad.add(1)
  await clock.advance(20_000)
  bad.clear()
  await clock.advance(HOUR_MS)
  t.same(verification.warnings(), [])
  t.notOk(gauge.includes(true))
})

t.test('a node that gives up the partition discards its findings', async (t) => {
  const { clock, bad, gauge, verification, disown } = setting(100)
  bad.add(50)
  await clock.advance(HOUR_MS)
  t.equal(verification.warnings().length, 1)
  disown()
  await clock.advance(20_000)
  t.same(verification.warnings(), [])
  t.equal(gauge.at(-1), false)
})

t.test('a truncated block in the middle of a journal is detected', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'baton-verify-'))
  const { path: binary } = await findServer(process.env)
  const identity = createIdentity()
  const start = (port: number) => startServer({ binary, data: folder, port, sync: '2m', identity })
  let server = await start(0)
  const nats = await connectNats({ access: server.access, name: 'x', log: silentLog, role: 'test' })
  t.teardown(async () => {
    await nats.close()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
  await provision(nats, { partitions: 1, shards: 1, replicas: 1 })
  const journal = createJournal(nats)
  for (let i = 0; i < 80; i++) await journal.append(0, 0, randomBytes(400_000), i, `m${i}`)
  t.same(await scanJournal(nats, 0, 1, 80), { next: 81, outcome: 'sound' })

  await server.stop()
  const messages = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const second = messages.find((name) => /JOURNAL_0\/msgs\/2\.blk$/.test(name)) ?? ''
  const block = join(folder, second)
  truncateSync(block, Math.floor(statSync(block).size / 2))
  server = await start(server.port)
  const reconnected = Date.now()
  while (!nats.connected() && Date.now() - reconnected < 10_000)
    await new Promise((again) => setTimeout(again, 50))
  t.equal((await journal.position(0)).missing, 0, 'the server does not know of it')

  const clock = new ManualClock()
  const scans: Scan[] = []
  const verification = startVerifying({
    partitions: 1,
    journal,
    clock,
    log: silentLog,
    metrics: { journalDamaged() {} },
    begin: 0,
    owns: () => true,
    scan: async (partition, from, to) => {
      const scan = await scanJournal(nats, partition, from, to)
      scans.push(scan)
      return scan
    },
  })
  t.teardown(() => verification.stop())
  const seen = Date.now()
  while (verification.warnings().length === 0 && Date.now() - seen < 30_000) {
    const before = scans.length
    await clock.advance(10_000)
    while (scans.length === before && Date.now() - seen < 30_000)
      await new Promise((again) => setTimeout(again, 20))
    await new Promise((again) => setTimeout(again, 20))
  }
  t.match(scans, [{ next: 21, outcome: /silent|damaged/ }])
  t.match(verification.warnings(), [/^journal_damaged: .* 21 /])
})
