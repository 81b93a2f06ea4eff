/**
 * Claim: the engine without network or disk. The shard host, its actors and the bus of one process take runs of one step
 * from `run.start` to `run.completed`; the journal and the snapshots are in memory and acknowledge at the next turn of
 * the event loop. What is left is the CPU that deciding, encoding, answering and handing on cost.
 */
import { randomBytes } from 'node:crypto'
import { actorKinds } from '../actors/kinds.ts'
import type { HostDeps, ShardAnswer } from '../nodes/host/deps.ts'
import type { Clock, Journal, Snapshots } from '../nodes/host/ports.ts'
import { Shard } from '../nodes/host/shard.ts'
import { createBus } from '../nodes/nats/bus.ts'
import type { Nats } from '../nodes/nats/connect.ts'
import type { Command, Origin } from '../protocol/entry.ts'
import { makeId } from '../protocol/ids.ts'
import { queueOfLease } from '../protocol/lease.ts'
import { subjects } from '../protocol/subjects.ts'
import { defaultTiming, type Offer } from '../protocol/worker.ts'
import { median } from './measure.ts'

const PROJECT = 'prj_01J00000000000000000000000'
/** Runs in flight: about a third of them wait for each commit. */
const IN_FLIGHT = 64
const RUNS = 3000

/** What one repeat used, per run. */
interface Used { readonly cpu: number; readonly bytes: number; readonly commands: number }
interface Counted { bytes: number; envelopes: number; commands: number }

const clock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  later: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
const turn = () => new Promise<void>((done) => setImmediate(done))
const journalInMemory = (count: Counted): Journal => {
  let sequence = 0
  return {
    append: async (_partition, _shard, data) => {
      count.bytes += data.length
      count.envelopes++
      const given = ++sequence
      await turn()
      return { sequence: given }
    },
    last: async () => undefined,
    read: async function* () {},
    position: async () => ({ first: 1, last: sequence }),
    follow: () => async () => {},
  }
}
const snapshotsInMemory = (): Snapshots => {
  let revision = 0
  const kept = new Map<string, { readonly data: Uint8Array; readonly revision: number }>()
  return {
    get: async (_partition, key) => kept.get(key),
    put: async (_partition, key, data) => {
      await turn()
      // Ended runs are not read again; what the shard stores of itself is.
      if (!key.startsWith('run/')) kept.set(key, { data, revision: revision + 1 })
      return ++revision
    },
    delete: async () => {},
  }
}
/** Random bytes as a node makes them: many at a time. */
const randomInPieces = () => {
  let pool = Buffer.alloc(0)
  let at = 0
  return (length: number): Uint8Array => {
    if (at + length > pool.length) {
      pool = randomBytes(8192)
      at = 0
    }
    at += length
    return pool.subarray(at - length, at)
  }
}
/** A connection that nobody else is on. */
const nobodyElse = { connection: { isClosed: () => false, subscribe: () => ({ unsubscribe() {} }) }, log: { debug() {}, info() {}, warn() {}, error() {} } } as unknown as Nats

/** A shard that is owned, and a gateway whose worker does every job at once. */
async function world(count: Counted) {
  const bus = createBus(nobodyElse, () => true)
  const random = { bytes: randomInPieces() }
  const deps: HostDeps = {
    node: 'bench', kinds: actorKinds({ brand: 'baton', timing: defaultTiming }), partitions: 1, shards: 1, timing: defaultTiming,
    journal: journalInMemory(count), snapshots: snapshotsInMemory(), blobs: { put: async () => {}, get: async () => undefined }, bus, clock, random, log: nobodyElse.log,
    measure: { commit() {}, command() { count.commands++ }, offer() {} }, fresh: () => true,
  }
  const shard = new Shard(deps, 0, 0, (reason) => { throw new Error(reason) })
  await shard.start(1)

  const ended = new Map<string, () => void>()
  const origin: Origin = {
    at: 0, principal: { type: 'service_account', id: 'svc_01J00000000000000000000000', name: 'bench' }, credential: { type: 'api_key', id: 'key_01J00000000000000000000000', name: 'bench' },
    request_id: 'req_0123456789abcdef', ip: '127.0.0.1', user_agent: 'bench/1.0',
  }
  const send = async (command: Command): Promise<unknown> => {
    const answer = await bus.request(subjects.shard(0, 0), { type: 'command', command }, 2000)
    const given = typeof answer === 'object' ? (answer.answer as ShardAnswer) : undefined
    if (!given || !('reply' in given)) throw new Error(`the engine refused ${command.name}: ${JSON.stringify(answer)}`)
    return given.reply
  }
  bus.subscribe(subjects.offerFilter(PROJECT, undefined, undefined), (message) =>
    ({ gateway: 'bench', takes: (message as Offer).jobs.map((job) => ({ job_id: job.id, session: 'wst_1', instance: 'worker-1' })) }), subjects.offerGroup)
  bus.subscribe(subjects.gateway('bench'), (message) => {
    const { job } = message as { job: { id: string; lease_token: string } }
    void send({
      project: PROJECT, kind: 'queue', id: `0.${queueOfLease(job.lease_token)}`, command_id: `r:${job.lease_token}`, name: 'queue.report', origin,
      input: { job_id: job.id, lease_token: job.lease_token, status: 'completed', result: { ok: true } },
    })
    return { ok: true }
  })
  // What one watcher of the whole project sees of its runs.
  bus.subscribe(subjects.liveKind(PROJECT, 'run'), (message) => {
    const { entry } = message as { entry: { id: string; events: readonly { type: string }[] } }
    if (entry.events.at(-1)?.type === 'run.completed') ended.get(entry.id)?.()
  })
  const spec = { steps: [{ kind: 'action', config: { action_name: 'send', parameters: { name: 'somebody' } } }] }
  let started = 0
  const run = async (): Promise<void> => {
    const id = makeId('run', Date.now(), random.bytes(10))
    const done = new Promise<void>((end) => ended.set(id, end))
    await send({ project: PROJECT, kind: 'run', id, command_id: `start-${started++}`, name: 'run.start', input: { spec }, origin, born: true })
    await done
    ended.delete(id)
  }
  return { run, stop: () => shard.stop() }
}

/** One repeat: `runs` runs with `IN_FLIGHT` in flight, storing what they leave behind included. */
async function repeat(runs: number): Promise<Used> {
  const count: Counted = { bytes: 0, envelopes: 0, commands: 0 }
  const { run, stop } = await world(count)
  const before = process.cpuUsage()
  let next = 0
  await Promise.all(Array.from({ length: IN_FLIGHT }, async () => {
    while (next++ < runs) await run()
  }))
  await stop()
  const { user, system } = process.cpuUsage(before)
  return { cpu: (user + system) / runs, bytes: count.bytes / runs, commands: count.commands / count.envelopes }
}

/** Run the benchmark. @param times repeats after a warm-up, `RUNS` runs each. @param say progress. @returns the table. */
export async function bench(times: number, say: (line: string) => void): Promise<string> {
  await repeat(RUNS)
  const all: Used[] = []
  for (let i = 0; i < times; i++) {
    const used = await repeat(RUNS)
    all.push(used)
    say(`${i + 1} of ${times}: ${used.cpu.toFixed(0)} µs of CPU per run`)
  }
  const cpu = all.map((used) => used.cpu).sort((a, b) => a - b)
  const { bytes, commands } = all[0] as Used
  return ['| runs of one step | CPU per run, best / median | runs per second of CPU | journal per run | commands per commit |', '|---|---|---|---|---|',
    `| engine without network | ${cpu[0]?.toFixed(0)} / ${median(cpu).toFixed(0)} µs | ${Math.round(1e6 / (cpu[0] ?? 1)).toLocaleString('en')} | ${(bytes / 1000).toFixed(1)} kB | ${commands.toFixed(1)} |`].join('\n')
}
