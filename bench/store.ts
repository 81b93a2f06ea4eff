/**
 * Claim: what storing costs this process, whatever the disk does: appends to a journal one after the other, as a shard
 * makes them, and snapshots 64 at a time, as a checkpoint makes them. A real nats-server with lazy syncing, in a folder
 * of its own.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectNats } from '../nodes/nats/connect.ts'
import { findServer } from '../nodes/nats/install.ts'
import { createJournal } from '../nodes/nats/journal.ts'
import { provision } from '../nodes/nats/provision.ts'
import { startServer } from '../nodes/nats/server.ts'
import { createSnapshots } from '../nodes/nats/snapshots.ts'
import { median } from './measure.ts'

const APPENDS = 1500
const SNAPSHOTS = 6400
const AT_ONCE = 64
/** Bytes of an envelope of twenty commands, and of the snapshot of an ended run. */
const ENVELOPE = 50_000
const SNAPSHOT = 2300

/** Microseconds of CPU that this process used for one of `count` pieces of work. */
async function cpu(count: number, work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

/** Run the benchmark. @param times repeats after a warm-up. @param say progress. @returns the table. */
export async function bench(times: number, say: (line: string) => void): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'baton-bench-'))
  const { path: binary } = await findServer(process.env)
  const server = await startServer({ binary, data, port: 0, sync: '2m' })
  const nats = await connectNats({ servers: [server.url], name: 'bench', log: { debug() {}, info() {}, warn() {}, error() {} } })
  try {
    await provision(nats, { partitions: 1, shards: 1, replicas: 1 })
    const journal = createJournal(nats)
    const snapshots = createSnapshots(nats)
    const [envelope, snapshot] = [new Uint8Array(ENVELOPE).fill(65), new Uint8Array(SNAPSHOT).fill(65)]
    let last = 0
    const appending = async () => {
      for (let i = 0; i < APPENDS; i++) {
        const stored = await journal.append(0, 0, envelope, last, `bench-${last}`)
        if (typeof stored !== 'object') throw new Error(`an append ended with ${stored}`)
        last = stored.sequence
      }
    }
    let runs = 0
    const storing = async () => {
      for (let i = 0; i < SNAPSHOTS; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, () => snapshots.put(0, `run/prj_01J00000000000000000000000/run_${runs++}`, snapshot, 0)))
    }
    const used: { append: number; put: number }[] = []
    for (let i = 0; i <= times; i++) {
      const one = { append: await cpu(APPENDS, appending), put: await cpu(SNAPSHOTS, storing) }
      if (i === 0) continue
      used.push(one)
      say(`${i} of ${times}: ${one.append.toFixed(0)} µs per append, ${one.put.toFixed(0)} µs per snapshot`)
    }
    const row = (name: string, values: number[]) => `| ${name} | ${Math.min(...values).toFixed(1)} / ${median(values).toFixed(1)} µs |`
    return ['| storing over NATS | CPU of this process, best / median |', '|---|---|',
      row(`append of ${ENVELOPE / 1000} kB`, used.map(({ append }) => append)), row(`snapshot of ${SNAPSHOT / 1000} kB, ${AT_ONCE} at a time`, used.map(({ put }) => put))].join('\n')
  } finally {
    await nats.close()
    await server.stop()
    await rm(data, { recursive: true, force: true })
  }
}
