/**
 * The process that `bench/edge.ts` measures: a real gateway over a world that decides nothing, told by its parent what to do.
 * Actors and views answer at once with ready-made records of an ordinary size, so that the time used is the edge's own.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { openDirectory } from '../../gateway/directory.ts'
import { newKey } from '../../gateway/keys.ts'
import type { Outcome, World } from '../../gateway/ports.ts'
import { createGateway } from '../../gateway/server.ts'
import { createMetrics } from '../../nodes/metrics.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Command, Placed } from '../../protocol/entry.ts'
import { makeId } from '../../protocol/ids.ts'
import { leaseToken } from '../../protocol/lease.ts'
import { defaultTiming, type ClaimedJob, type GatewayMessage, type Offer, type Taking } from '../../protocol/worker.ts'

const ORG = 'org_01AAAAAAAAAAAAAAAAAAAAAAAA'
const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'
const AT = timestamp(Date.UTC(2026, 0, 1))
const spec = { steps: [{ kind: 'action', config: { action_name: 'send', parameters: { name: 'a name', amount: 12.5, tags: ['one', 'two'] } } }] }
const record = { id: 'run_01AAAAAAAAAAAAAAAAAAAAAA0C', status: 'running', definition_id: '', definition_version: 0, cancel_requested: false, queue: 'default', initiated_by: 'root', created_at: AT, started_at: AT, updated_at: AT }
const detail = { ...record, spec, step_counts: { running: 1 } }
const NOTHING = { items: [], exists: true, last: 0, ended: false, oldest: 0 }

let random = Buffer.alloc(0)
const bytes = (length: number): Uint8Array => {
  if (random.length < length) random = randomBytes(8192)
  const given = random.subarray(0, length)
  random = random.subarray(length)
  return given
}
const hash = (text: string) => createHash('sha256').update(text).digest('hex')
const seal = (text: string): Uint8Array => createHmac('sha256', 'sealed').update(text).digest()
const settings: World['settings'] = {
  brand: 'Service', key_prefix: 'bat', shards: 16, deadline: 15_000, rate: { key: 100_000_000, organization: 100_000_000, window_seconds: 60 }, timing: defaultTiming, keepalive: 60_000, cors: [], version: '0',
}
const root = newKey({ random: bytes, seal, hash, settings }, undefined)
const configuration: Readonly<Record<string, unknown>> = {
  organization: {
    id: ORG, handles: { default: PRJ }, projects: { [PRJ]: { id: PRJ, handle: 'default', name: 'Default', created_at: AT, updated_at: AT } },
    keys: { [root.hash]: { id: 'key_01AAAAAAAAAAAAAAAAAAAAAAAA', name: 'root', key_prefix: root.key_prefix, principal_id: 'svc_01AAAAAAAAAAAAAAAAAAAAAAAA', org_role: 'Owner', created_at: AT, updated_at: AT } },
  },
  project: { id: PRJ, keys: {}, principals: {}, workflows: {} },
}

/** Work without end: whoever announces free slots is offered as many jobs as it takes, and gets each in a message of its own. */
let offered: ((offer: Offer) => Taking | undefined) | undefined
let mailbox: (message: GatewayMessage) => unknown = () => {}
const job = (id: string): ClaimedJob => ({
  id, kind: 'action_execution', origin: 'loop_action_step', executor_kind: 'customer_worker', queue: 'default', action_name: 'send', run_id: makeId('run', Date.now(), bytes(10)), step_id: 'send',
  spec: { action_name: 'send', parameters: { name: 'a name', amount: 12.5 } }, lease_token: leaseToken('0123456789abcdef', 'default'), claim_attempt: 1, lease_duration_seconds: 60, heartbeat_cadence_seconds: 20,
})
function offer(): void {
  const jobs = Array.from({ length: 64 }, () => ({ id: makeId('job', Date.now(), bytes(10)), kind: 'action_execution', executor_kind: 'customer_worker', action_name: 'send' }))
  const taken = offered?.({ project: PRJ, queue: 'default', jobs } as unknown as Offer)
  for (const { job_id, session } of taken?.takes ?? []) queueMicrotask(() => { mailbox({ type: 'assign', project: PRJ, session, job: job(job_id) }) })
}
const replies: Readonly<Record<string, (command: Command) => unknown>> = {
  'run.start': () => record,
  'queue.report': () => ({ outcome: 'accepted' }),
  'worker.register': ({ input }) => ({ registration: input, resumed: false, draining: false }),
}
const registered = (input: object) => ({ ...input, generation: 1, connected_at: Date.now() })

const listeners = new Map<string, Set<(placed: Placed) => void>>()
const metrics = createMetrics()
const world: World = {
  node: 'gw', settings, now: () => Date.now(), random: bytes, hash, seal,
  later: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  id: (prefix, from) => makeId(prefix, Date.now(), from === undefined ? bytes(10) : seal(from)),
  organization: () => ORG,
  async command(command): Promise<Outcome> {
    const reply = replies[command.name]?.(command) ?? {}
    return { reply: command.name === 'worker.register' ? { ...(reply as object), registration: registered(command.input as object) } : reply }
  },
  ask: async ({ kind }) => configuration[kind],
  view: async (_, name) => (name === 'run.get' ? detail : NOTHING),
  everywhere: async () => [{ project: PRJ }],
  live: (_, kind, id, on) => {
    const key = `${kind} ${id ?? '*'}`
    const set = listeners.get(key) ?? new Set()
    listeners.set(key, set.add(on))
    return () => void set.delete(on)
  },
  forget: async () => {},
  onMessage: (handler) => { mailbox = handler },
  onOffer: (_project, _queue, _capability, handler) => {
    offered = handler
    return () => { offered = undefined }
  },
  demand: () => setImmediate(offer),
  fresh: () => true, unready: async () => [], metrics: () => metrics.text(),
  log: { debug() {}, info() {}, warn(fields, message) { process.stderr.write(`${message} ${JSON.stringify(fields)}\n`) }, error(fields, message) { process.stderr.write(`${message} ${String((fields as { err?: unknown }).err)}\n`) } },
  count: metrics,
}

let cursor = 1000
/** Publish entries of a run, each of three events as a step's are, a few per turn; told when the last is out. */
async function publish(run: string, entries: number, perTurn: number): Promise<void> {
  for (let i = 0; i < entries; i++) {
    const events = [{ type: 'action.completed', step: 'send', payload: { action_name: 'send', attempt: 1 } }, { type: 'step.completed', step: 'send', payload: { result: { ok: true } } }, { type: 'step.started', step: 'next', payload: {} }]
    const placed = { cursor, entry: { project: PRJ, kind: 'run', id: run, command: { id: 'c', name: 'x' }, origin: { at: Date.now(), principal: { type: 'system', id: 's' } }, events, prev: cursor === 1000 ? 0 : cursor - 998 } } as Placed
    cursor += 1000
    for (const hear of listeners.get(`run ${run}`) ?? []) hear(placed)
    if (i % perTurn === perTurn - 1) await new Promise((turn) => setImmediate(turn))
  }
}

/** What the parent asks for. */
export type Asked = { readonly type: 'usage' } | { readonly type: 'publish'; readonly run: string; readonly entries: number; readonly perTurn: number }
/** Answers: microseconds of CPU used so far; `ready` once, at the start. */
export type Told = { readonly type: 'ready'; readonly port: number; readonly key: string } | { readonly type: 'usage'; readonly micros: number } | { readonly type: 'published' }

const tell = (told: Told): void => { process.send?.(told) }
process.on('message', (asked: Asked) => {
  if (asked.type === 'publish') return void publish(asked.run, asked.entries, asked.perTurn).then(() => tell({ type: 'published' }))
  const { user, system } = process.cpuUsage()
  tell({ type: 'usage', micros: user + system })
})
process.on('disconnect', () => process.exit(0))

const port = await createGateway(world, openDirectory(world)).listen('127.0.0.1', 0)
tell({ type: 'ready', port, key: root.key })
