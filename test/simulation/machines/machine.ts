/**
 * A machine that runs one node of the service: the real shard host, membership and gateway ports,
 * connected to the simulation.
 *
 * Invariants:
 * M1. Nothing that a dead machine awaited ever completes. Its promises remain pending, and its
 *     timers and subscriptions are silent.
 * M2. A paused machine does nothing. Everything that arrives during the pause is delivered when it
 *     resumes.
 * M3. A death can be scheduled for a future external call, before or after the call takes effect.
 */

import type { Log, World } from '../../../gateway/ports.ts'
import { Membership } from '../../../nodes/host/cluster/membership.ts'
import { createNeighbours, listenAs } from '../../../nodes/host/cluster/neighbours.ts'
import type { HostDeps } from '../../../nodes/host/deps.ts'
import { Host } from '../../../nodes/host/host.ts'
import { LocalShards } from '../../../nodes/host/local-shards.ts'
import type { EnvelopeFormat } from '../../../nodes/host/memory/codec.ts'
import type { Blobs, Clock } from '../../../nodes/host/ports.ts'
import { createWorld } from '../../../nodes/world.ts'
import { Hub } from '../clients/hub.ts'
import type { Simulation } from '../simulation.ts'
import { journalPort, registryPort, statePort } from './ports.ts'

/** Unix milliseconds at the start of every simulation. */
export const EPOCH = Date.UTC(2026, 0, 1)

/**
 * Maximum difference between a clock and the time after the clock was set. The checks at the end
 * allow a little more.
 */
const MAX_SKEW_MS = 20_000

export class Machine {
  readonly sim: Simulation
  /** The id of the node. */
  readonly id: string
  /** A name that also distinguishes the restarts of the node. */
  readonly name: string
  alive = true
  readonly onDeath: (() => void)[] = []
  paused = false
  stopping = false
  /** Whether the servers and the other machines are unreachable. */
  cut = false
  /**
   * If true, `Bus.here` never answers and no shard is called directly. The machine's shards and its
   * gateway then exchange requests, as if they were in separate processes.
   */
  readonly apart: boolean
  /**
   * The number of external calls until the machine dies. The last call may or may not take effect.
   */
  fuse = Number.POSITIVE_INFINITY
  /** The simulated time at which the machine's latest call arrives at the servers. */
  arrived = 0
  readonly clock: Clock
  readonly world: World
  readonly host: Host
  readonly hub: Hub
  readonly #membership: Membership
  #backlog: (() => void)[] = []
  #skew: number
  #started: number

  constructor(sim: Simulation, id: string, life: number) {
    this.sim = sim
    this.id = id
    this.name = life === 0 ? id : `${id}#${life}`
    this.apart = sim.dice.chance(0.5)
    const { weather, timeline } = sim
    const rate = weather.kinds.has('drift') ? weather.dice('drift').between(0.97, 1.03) : 1
    this.#skew = weather.kinds.has('skew') ? weather.dice('skew').between(-20_000, 20_000) : 0
    this.#started = timeline.now
    this.clock = {
      now: () => Math.floor(EPOCH + timeline.now * rate + this.#skew),
      elapsed: () => 1000 + (timeline.now - this.#started) * rate,
      later: (ms, run) => {
        let due = true
        const cancel = timeline.after(Math.max(0, ms) / rate, () =>
          this.enter(() => {
            if (due) run()
          }),
        )
        return () => {
          due = false
          cancel()
        }
      },
    }
    const random = { bytes: (length: number) => sim.ids.bytes(length) }
    const registry = registryPort(this)
    const bus = sim.network.bus(this)
    const local = this.apart ? undefined : new LocalShards()
    this.#membership = new Membership(
      registry,
      this.clock,
      { id, roles: ['gateway', 'shards'] },
      {
        ...createNeighbours(bus),
        hasNoSubscriber: (other) => sim.network.hasNoSubscriber(this, other),
      },
    )
    listenAs(
      bus,
      id,
      () => this.#membership.noteJoin(),
      () => {},
    )
    const fresh = () => this.#membership.fresh()
    const deps: HostDeps = {
      node: id,
      kinds: sim.kinds,
      partitions: 1,
      shards: sim.shards,
      timing: sim.timing,
      journal: journalPort(this),
      snapshots: statePort(this),
      blobs,
      bus,
      local,
      clock: this.clock,
      random,
      log: this.#log(),
      measure: { commit() {}, command() {}, offer() {} },
      fresh,
      // The format of new envelopes changes every millisecond, so that the journal contains all
      // formats.
      format: () => ((Math.floor(timeline.now) % 3) + 1) as EnvelopeFormat,
      notify: (notice) => sim.tell(this, notice),
    }
    this.host = new Host(sim.plant?.deps?.(deps) ?? deps, registry, this.#membership)
    const settings = {
      brand: 'Sim',
      key_prefix: 'sim',
      shards: sim.shards,
      deadline: 5000,
      rate: { key: 0, organization: 0, window_seconds: 1 },
      timing: sim.timing,
      keepalive: 1000,
      cors: [],
      version: '0',
      models: { default_model: '', providers: [] },
      sessions: { age: 55_000, idle: 2000 },
      artifacts: { max_bytes: 1_048_576, upload_ms: 90_000 },
    }
    this.world = createWorld({
      node: id,
      settings,
      partitions: 1,
      shards: sim.shards,
      secret: new Uint8Array(32),
      organization: sim.organization,
      bus,
      local,
      clock: this.clock,
      random,
      membership: this.#membership,
      log: deps.log,
      count: { request() {}, open() {}, inc() {} },
      unready: async () => [],
      metrics: async () => '',
      unreachable: async () => undefined,
      unreachableRepository: async () => undefined,
    })
    this.hub = new Hub(this)
  }

  /** Joins the cluster. If that fails, the machine dies, as a process would. */
  async start(): Promise<void> {
    try {
      await this.#membership.start(() => this.host.round())
      await this.host.round()
    } catch (error) {
      this.sim.note(() => `${this.name} cannot start: ${String(error)}`)
      this.kill()
    }
  }
  /** Stops gracefully, as on SIGTERM. */
  async stop(): Promise<void> {
    this.stopping = true
    await this.host.stop()
    await this.#membership.stop()
    this.kill()
  }
  /**
   * Runs a function on this machine: immediately, or when the machine resumes. A dead machine never
   * runs it.
   */
  enter(run: () => void): void {
    if (!this.alive) return
    if (this.paused) this.#backlog.push(run)
    else run()
  }
  pause(ms: number): void {
    if (!this.alive || this.paused) return
    this.sim.note(() => `${this.name} stands still for ${Math.round(ms)} ms`)
    this.paused = true
    this.sim.timeline.after(ms, () => {
      this.paused = false
      const backlog = this.#backlog
      this.#backlog = []
      // Input from different sockets and timers has no defined order, so it arrives in random
      // order.
      for (const run of backlog)
        this.sim.timeline.after(this.sim.weather.dice('pause').between(0, 2), () => this.enter(run))
    })
  }
  /** Moves the wall clock by `ms` milliseconds, but not further than `MAX_SKEW_MS` from the time. */
  jump(ms: number): void {
    const skew = Math.min(MAX_SKEW_MS, Math.max(-MAX_SKEW_MS, this.#skew + ms))
    this.sim.note(() => `${this.name}: the clock is set by ${Math.round(skew - this.#skew)} ms`)
    this.#skew = skew
  }
  kill(): void {
    if (!this.alive) return
    this.sim.note(() => `${this.name} dies`)
    this.alive = false
    this.#backlog = []
    this.sim.died(this)
  }
  /**
   * Counts an external call. Returns false if the call must not take effect, because the machine is
   * dead or dies just before it.
   */
  spend(): boolean {
    if (!this.alive) return false
    if (--this.fuse > 0) return true
    const sent = this.sim.weather.dice('kill').chance(0.5)
    this.sim.timeline.after(0, () => this.kill())
    if (!sent) this.kill()
    return sent
  }

  #log(): Log {
    const say = (fields: object, message: string) =>
      this.sim.note(() => {
        const { err, ...rest } = fields as { err?: unknown }
        return `${this.name}: ${message} ${JSON.stringify(rest)}${err ? ` ${String(err)}` : ''}`
      })
    return {
      debug() {},
      info: say,
      warn: say,
      error: (fields, message) => {
        say(fields, message)
        if (fields.event === 'actor_decision_failed' || fields.event === 'effect_failed')
          this.sim.violated(
            `${message} on ${this.name}: ${String((fields as { err?: unknown }).err)}`,
          )
      },
    }
  }
}
const blobs: Blobs = {
  put: async () => {
    throw new Error('nothing here is that large')
  },
  get: async () => undefined,
  delete: async () => {},
}
