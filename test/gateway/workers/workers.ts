/**
 * A test setup for the worker socket: a manual clock, scripted actors, and workers that record
 * their frames.
 */
import { createHash } from 'node:crypto'
import { uniqueTexts } from '../../../gateway/http/hex.ts'
import type { Outcome, World } from '../../../gateway/ports.ts'
import type { Connection } from '../../../gateway/workers/connection.ts'
import type { Grant } from '../../../gateway/workers/edge.ts'
import { type Hub, openHub } from '../../../gateway/workers/hub.ts'
import type { Command } from '../../../protocol/entry.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import { makeId, type Prefix } from '../../../protocol/ids.ts'
import { leaseToken } from '../../../protocol/jobs/lease-token.ts'
import type { GrantedLease } from '../../../protocol/jobs/leases.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { offerCapability, subjects } from '../../../protocol/subjects.ts'
import type { Offer, OfferReply } from '../../../protocol/workers/messages.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { fakeWorld } from '../../support/fake-world.ts'

export const PROJECT = 'prj_00000000000000000000000A01'

/** A manual clock. After each timer, `advance` waits until promises have settled. */
class Clock {
  /** The monotonic time. */
  now = 1_900_000_000_000
  /** Difference of the system clock from the monotonic time, in milliseconds. */
  offset = 0
  #timers: { at: number; run: () => void; off: boolean }[] = []
  later = (ms: number, run: () => void): (() => void) => {
    const timer = { at: this.now + ms, run, off: false }
    this.#timers.push(timer)
    return () => {
      timer.off = true
    }
  }
  async advance(ms: number): Promise<void> {
    const end = this.now + ms
    await settle()
    for (;;) {
      this.#timers = this.#timers.filter((timer) => !timer.off)
      const next = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0]
      if (!next) break
      next.off = true
      this.now = Math.max(this.now, next.at)
      next.run()
      await settle()
    }
    this.now = end
  }
  get waiting(): number {
    return this.#timers.filter((timer) => !timer.off).length
  }
}
export const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

interface Got {
  readonly type: string
  readonly message_id?: string
  readonly job_id?: string
  readonly jobs?: readonly ClaimedJob[]
  readonly error?: { readonly code: string; readonly message: string }
  readonly worker_session_token?: string
  readonly lease?: object
  readonly duplicate?: boolean
  readonly cancel?: object
  readonly directives?: object
  readonly reason?: string
  readonly requested_at?: string
}
type Script = (command: Command) => unknown
/**
 * A test worker. Records the frames that it receives, the pings, and how its connection was closed.
 * `sending`: what happens to the frames that are written to its socket.
 */
class Worker {
  readonly frames: Got[] = []
  closed: { code: number; reason: string } | 'dropped' | undefined
  sending: 'sent' | 'buffered' | 'lost' = 'sent'
  pings = 0
  connection!: Connection
  send(frame: object): void {
    this.connection.receive(JSON.stringify(frame))
  }
  /**
   * Sends a frame and waits until promises have settled. Returns the frames that the worker
   * received in the meantime.
   */
  async say(frame: object): Promise<Got[]> {
    const from = this.frames.length
    this.send(frame)
    await settle()
    return this.frames.slice(from)
  }
  of(type: string): Got[] {
    return this.frames.filter((frame) => frame.type === type)
  }
  get types(): string[] {
    return this.frames.map((frame) => frame.type)
  }
  get code(): number | undefined {
    return typeof this.closed === 'object' ? this.closed.code : undefined
  }
}

export interface Scene {
  readonly clock: Clock
  readonly world: World
  readonly hub: Hub
  readonly commands: Command[]
  /** The number of times that demand was announced. */
  demands: number
  /** Replies from actors, by command name. */
  readonly on: Record<string, Script>
  /** Leases of sessions, as the view returns them. `down`: the view is unavailable. */
  leases: Record<string, { job_id: string; queue: string }[]> | 'down'
  /** The reply of every queue to a query about its leases. */
  granted: readonly GrantedLease[] | Refusal
  /** Whether the registry reports connections as current. */
  current: boolean
  /** The result of rechecking a credential. */
  verdict: Refusal | undefined
  /** The number of subscriptions, by subject. */
  readonly listening: Map<string, number>
  /** Offers jobs as a queue does: to one subscriber of a matching subject. */
  offer(jobs: JobHeader[], queue?: string): OfferReply | undefined
  named(name: string): Command[]
  connect(grant?: Partial<Grant>): Worker
  worker(register?: object, grant?: Partial<Grant>): Promise<Worker>
}

/** @param more members that replace those of the world. */
export function scene(
  settings: Partial<World['settings']> = {},
  more: Partial<Pick<World, 'ask' | 'logs'>> = {},
): Scene {
  const clock = new Clock()
  const commands: Command[] = []
  const listening = new Map<string, number>()
  const handlers = new Map<string, ((offer: Offer) => OfferReply | undefined)[]>()
  let counter = 0
  let generation = 0
  const bytes = (length: number): Uint8Array =>
    createHash('sha512').update(`${counter++}`).digest().subarray(0, length)
  const on: Record<string, Script> = {
    'worker.register': ({ input }) => {
      const { given_token_hash: _, ...asked } = input as Record<string, unknown>
      return {
        registration: { ...asked, generation: ++generation, connected_at: clock.now },
        resumed: false,
        draining: false,
      }
    },
    'worker.seen': () => ({ current: true }),
    'queue.heartbeat': () => ({ alive: true }),
    'queue.report': () => ({ outcome: 'accepted' }),
  }
  const world = fakeWorld({
    node: 'gw1',
    settings: {
      brand: 'Service',
      key_prefix: 'bat',
      shards: 4,
      deadline: 15_000,
      rate: { key: 0, organization: 0, window_seconds: 60 },
      timing: defaultTiming,
      keepalive: 15_000,
      sessions: { age: 55_000, idle: 2000 },
      cors: [],
      version: '0',
      ...settings,
    },
    now: () => clock.now + clock.offset,
    monotonic: () => clock.now,
    later: clock.later,
    random: bytes,
    newCommandId: uniqueTexts(bytes),
    hash: (text: string) => createHash('sha256').update(text).digest('hex'),
    seal: (text: string) => createHash('sha256').update(text).digest(),
    id: (prefix: Prefix, from?: string) =>
      makeId(
        prefix,
        from === undefined ? clock.now : 0,
        from === undefined ? bytes(10) : createHash('sha256').update(from).digest(),
      ),
    organization: () => 'org_1',
    command: async (command: Command): Promise<Outcome> => {
      commands.push(command)
      const answer = await on[command.name]?.(command)
      return typeof answer === 'object' && answer !== null && 'refused' in answer
        ? (answer as Refusal)
        : { reply: answer }
    },
    ask: async (_to: unknown, name: string) => (name === 'leases' ? made.granted : made.current),
    view: async (_project: string, name: string, input: unknown) => {
      if (made.leases === 'down') throw new Error('no view')
      return name === 'leases'
        ? { items: made.leases[(input as { session: string }).session] ?? [] }
        : undefined
    },
    onOffer: (
      project: string,
      queue: string | undefined,
      capability: string | undefined,
      handler: (offer: Offer) => OfferReply | undefined,
    ) => {
      const subject = subjects.offerFilter(project, queue, capability)
      listening.set(subject, (listening.get(subject) ?? 0) + 1)
      handlers.set(subject, [...(handlers.get(subject) ?? []), handler])
      return () => {
        const others = (handlers.get(subject) ?? []).filter((other) => other !== handler)
        if (others.length > 0) {
          handlers.set(subject, others)
          listening.set(subject, others.length)
        } else {
          handlers.delete(subject)
          listening.delete(subject)
        }
      }
    },
    demand: () => {
      made.demands++
    },
    fresh: () => true,
    log: {
      debug() {},
      info() {},
      warn() {},
      error: (fields: object, message: string) => {
        throw new Error(`${message}: ${JSON.stringify(fields)}`)
      },
    },
    count: { request() {}, open() {}, inc() {} },
    ...more,
  })
  const hub = openHub(world)
  const made: Scene = {
    clock,
    world,
    hub,
    commands,
    demands: 0,
    on,
    leases: {},
    granted: [],
    current: true,
    verdict: undefined,
    listening,
    offer(jobs, queue = 'default') {
      const [first] = jobs
      if (!first) return undefined
      const subject = subjects.offer(PROJECT, queue, offerCapability(first)).split('.')
      const match = [...handlers].find(([filter]) =>
        filter.split('.').every((token, index) => token === '*' || token === subject[index]),
      )
      return match?.[1][0]?.({ project: PROJECT, queue, jobs })
    },
    named: (name) => commands.filter((command) => command.name === name),
    connect(grant = {}) {
      const worker = new Worker()
      const full: Grant = {
        project: PROJECT,
        handle: 'demo',
        principal: { type: 'service_account', id: 'svc_1' },
        credential: { type: 'api_key', id: 'key_1' },
        key: 'k',
        recheck: async () => made.verdict,
        ...grant,
      }
      worker.connection = hub.connect(full, {
        send: (text) => {
          if (worker.sending === 'lost') return false
          worker.frames.push(JSON.parse(text))
          if (worker.sending === 'buffered') worker.connection.buffered()
          return true
        },
        ping: () => {
          worker.pings++
        },
        close: (code, reason) => {
          worker.closed = { code, reason }
        },
        drop: () => {
          worker.closed = 'dropped'
        },
      })
      return worker
    },
    async worker(register = {}, grant = {}) {
      const worker = made.connect(grant)
      await worker.say({
        type: 'worker.register',
        message_id: 'r',
        worker_instance_id: 'box',
        concurrency_limit: 4,
        ...register,
      })
      return worker
    },
  }
  return made
}

export const sessionOf = (at: Scene): string =>
  (at.named('worker.register').at(-1)?.input as { session: string } | undefined)?.session ?? ''

export const header = (number: number, more: Partial<JobHeader> = {}): JobHeader => ({
  id: makeId('job', 0, createHash('sha256').update(`job ${number}`).digest(), number),
  kind: 'action_execution',
  origin: 'loop_action_step',
  executor_kind: 'customer_worker',
  action_name: 'mail',
  priority: 0,
  fairness_key: '',
  enqueued_at: 0,
  max_attempts: 1,
  max_losses: 1,
  ...more,
})
export const leased = (
  job: JobHeader,
  queue = 'default',
  attempt = 1,
  spec: Record<string, unknown> = { parameters: {} },
): ClaimedJob => ({
  id: job.id,
  kind: job.kind,
  origin: job.origin,
  executor_kind: job.executor_kind,
  queue,
  ...(job.action_name !== undefined && { action_name: job.action_name }),
  ...(job.environment_id !== undefined && { environment_id: job.environment_id }),
  ...(job.provider !== undefined && { provider: job.provider }),
  ...(job.model !== undefined && { model: job.model }),
  spec,
  lease_token: leaseToken(`${job.id.slice(-6)}${attempt}`, queue),
  claim_attempt: attempt,
  lease_duration_seconds: 60,
  heartbeat_cadence_seconds: 20,
})
/**
 * Offers jobs, then leases and assigns the accepted ones as the queue does. Returns the answers to
 * the assignments.
 */
export async function hand(
  at: Scene,
  jobs: JobHeader[],
  queue = 'default',
): Promise<{ ok: boolean }[]> {
  const taking = at.offer(jobs, queue)
  const answers = (taking?.takes ?? []).map(({ job_id, session }) => {
    const job = jobs.find(({ id }) => id === job_id) as JobHeader
    return at.hub.receive({ type: 'assign', project: PROJECT, session, job: leased(job, queue) })
  })
  await settle()
  return Promise.all(answers)
}
