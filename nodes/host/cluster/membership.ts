/**
 * Tracks cluster membership: which nodes are alive. `assignment.ts` assigns the shards to these
 * nodes. Each node renews one registry record. A node is dead when its record has not changed for
 * `LEASE_DURATION_MS`, or for `DEAD_WITHOUT_SUBSCRIBER_MS` if the NATS servers report no subscriber
 * for its name. Each node measures these times with its own clock. `own-record.ts` renews the
 * record of this node, and `observed-nodes.ts` reads the records of all nodes.
 *
 * Invariants:
 * M1. A node whose last renewal is almost `DEAD_WITHOUT_SUBSCRIBER_MS` old is not `fresh` and
 *     answers nothing from memory alone. A node that is judged dead although it only lost its
 *     connection therefore delays its answers, but never answers from outdated state.
 * M2. Membership decides which node should own a shard, not which node owns it: two nodes may
 *     consider themselves the owner, and the journal's fence excludes the stale one. The silence of
 *     a node is measured up to the last reading of the records. A node therefore does not mistake
 *     its own suspension for the silence of others.
 * M3. A node counts as having been away if its previous renewal is older than `FRESH_MS` when it
 *     renews its record. It then checks the ownership of its shards before it is `fresh` again. Its
 *     renewals do not wait for that check. Otherwise a busy node would seem to be away because its
 *     checks are slow.
 * M4. The registry may lose all records. A node whose record is missing counts as alive until its
 *     lease would have expired. A node's record lists the shards that it serves. If a shard's
 *     record is missing, other nodes therefore do not take the shard from a live node.
 * M5. Messages of a node that considers itself alone (`alone`) stay in its process. A joining node
 *     would miss them, so it waits until every other node has answered its greeting, or can no
 *     longer consider itself alone.
 */
import type { Clock, Registry } from '../ports.ts'
import { DEAD_WITHOUT_SUBSCRIBER_MS, LEASE_DURATION_MS, RENEWAL_INTERVAL_MS } from '../timing.ts'
import type { Member, RoleName } from './assignment.ts'
import type { Neighbours } from './neighbours.ts'
import type { Claimed } from './node-id.ts'
import type { LiveNode } from './node-record.ts'
import { ObservedNodes } from './observed-nodes.ts'
import { OwnRecord } from './own-record.ts'

/**
 * How long, in milliseconds, a node is fresh after a renewal. This is shorter than
 * `DEAD_WITHOUT_SUBSCRIBER_MS`, because clocks run at different speeds.
 */
const FRESH_MS = 1100
/**
 * How long, in milliseconds, a node may consider itself alone after a renewal. This is shorter than
 * `LEASE_DURATION_MS`, because clocks run at different speeds.
 */
const ALONE_MS = 1800

type Contact = Pick<Neighbours, 'greet' | 'hasNoSubscriber'>

export class Membership {
  readonly #clock: Clock
  readonly #self: string
  readonly #neighbours: Contact | undefined
  readonly #record: OwnRecord
  readonly #nodes: ObservedNodes
  /** When the last successful renewal began, in monotonic milliseconds. */
  #renewedAt = Number.NEGATIVE_INFINITY
  /** When another node joined, or may have joined, in monotonic milliseconds. */
  #joinAt = Number.NEGATIVE_INFINITY
  /** Number of times that this node was away (M3). */
  #absences = 0
  /** Value of `#absences` at the start of the last ownership check that succeeded. */
  #checkedAbsences = 0
  readonly #timers = new Set<() => void>()
  #stopped = false

  /** @param neighbours present if this node answers presence probes. */
  constructor(registry: Registry, clock: Clock, self: Member, neighbours?: Contact) {
    this.#clock = clock
    this.#self = self.id
    this.#neighbours = neighbours
    this.#record = new OwnRecord(registry, clock, self, neighbours !== undefined)
    this.#nodes = new ObservedNodes(registry, clock, self.id, neighbours)
  }

  /**
   * Sets the record that was claimed for this process. The membership renews the record, and ends
   * once another process has claimed it. Called before `start`.
   */
  useClaim(claimed: Claimed): void {
    this.#record.useClaim({
      ...claimed,
      superseded: (fault) => {
        this.#stopTimers()
        claimed.superseded(fault)
      },
    })
  }
  /** Sets the function that returns, for this node's record, the shards that the node serves. */
  reportShards(shards: () => readonly string[]): void {
    this.#record.reportShards(shards)
  }
  /** Sets the function that returns, for this node's record, why the node accepts no writes. */
  reportStops(stops: () => readonly string[]): void {
    this.#record.reportStops(stops)
  }
  /**
   * Joins the cluster and keeps renewing the record of this node. Resolves when no other node can
   * still consider itself alone. Only then can this node rely on receiving messages (M5).
   * @param onRound called in every round, after the records were read.
   */
  async start(onRound: () => Promise<void>): Promise<void> {
    const joinedAt = await this.#record.renew()
    await this.#nodes.read()
    this.#renewedAt = joinedAt
    this.#repeat(
      () => RENEWAL_INTERVAL_MS,
      async () => {
        const startedAt = await this.#record.renew()
        if (!this.#renewedWithin(FRESH_MS)) this.#absences++
        this.#renewedAt = startedAt
      },
    )
    this.#repeat(
      () => Math.min(RENEWAL_INTERVAL_MS, this.#nodes.msUntilLimit()),
      async () => {
        const absences = this.#absences
        await this.#nodes.read()
        await onRound()
        this.#checkedAbsences = absences
      },
    )
    await this.#greetOthers()
  }
  /** Leaves the cluster, so that other nodes need not wait until the lease expires. */
  async stop(): Promise<void> {
    this.#stopTimers()
    await this.#record.withdraw()
  }

  /**
   * Whether other nodes can rely on this node: its record was renewed recently, and it has checked
   * the ownership of its shards since it was last away.
   */
  fresh(): boolean {
    return this.#checkedAbsences === this.#absences && this.#renewedWithin(FRESH_MS)
  }
  /** Whether it is certain that no other node is alive. */
  alone(): boolean {
    if (this.#nodes.hasOthers()) return false
    const now = this.#clock.elapsed()
    const recent = this.#renewedWithin(ALONE_MS) && now - this.#nodes.readAt < ALONE_MS
    return recent && now - this.#joinAt >= LEASE_DURATION_MS
  }
  /**
   * Records that a node has joined, or may have joined while this node could not receive messages.
   * `alone` is then false for `LEASE_DURATION_MS`. Meanwhile, this node reads the new record.
   */
  noteJoin(): void {
    this.#joinAt = this.#clock.elapsed()
  }
  /**
   * Renews this node's record now, so that other nodes see its current content. Concurrent callers
   * share one renewal.
   */
  renewNow(): Promise<void> {
    return this.#record.renewNow()
  }
  /** Reads the records now, for a decision that must not miss a node that has just joined. */
  refresh(): Promise<void> {
    return this.#nodes.read()
  }

  /** Returns the live nodes with a role, including this one. */
  members(role: RoleName): readonly Member[] {
    return this.#nodes
      .members()
      .flatMap(({ member }) => (member.roles.includes(role) ? [member] : []))
  }
  /** Returns the live nodes, including this one. */
  nodes(): readonly LiveNode[] {
    const now = this.#clock.elapsed()
    return this.#nodes.members().map(({ member, changedAt, shards, stops, about }) => ({
      ...member,
      shards,
      stops,
      about,
      silent_ms: Math.max(0, now - changedAt),
    }))
  }
  /** Returns the reasons why live nodes, including this one, accept no writes. */
  stops(): readonly string[] {
    const others = this.#nodes.alive().flatMap(({ stops }) => stops)
    return [...new Set([...this.#record.stops(), ...others])]
  }
  /** Whether all live nodes can read this envelope format. */
  allRead(format: number): boolean {
    return this.#nodes
      .alive()
      .every(({ reads, member }) => reads >= format || member.id === this.#self)
  }
  /** Whether another live node reports that it serves a shard. */
  isServedElsewhere(shard: string): boolean {
    return this.#nodes
      .alive()
      .some(({ shards, member }) => member.id !== this.#self && shards.includes(shard))
  }
  /**
   * Returns the number of times that this node has detected the end of another gateway. A gateway
   * ends when it leaves, becomes silent, or restarts under the same name.
   */
  endedGateways(): number {
    return this.#nodes.endedGateways
  }
  /**
   * Resolves when a node that was found dead can no longer consider itself fresh. Callers wait
   * after they have taken over a shard from it, because it may have renewed its record in the
   * meantime.
   */
  async waitUntilStale(id: string): Promise<void> {
    await this.#nodes.read()
    if (this.#nodes.isAlive(id))
      await new Promise<void>((over) => this.#clock.later(DEAD_WITHOUT_SUBSCRIBER_MS, over))
  }

  #renewedWithin(ms: number): boolean {
    return this.#clock.elapsed() - this.#renewedAt < ms
  }
  /**
   * Greets the other nodes. Resolves when all of them have answered, or after `LEASE_DURATION_MS`
   * at the latest. After that time, no other node can still consider itself alone (M5).
   */
  #greetOthers(): Promise<void> {
    const others = this.#nodes.others()
    if (others.length === 0) return Promise.resolve()
    return new Promise<void>((done) => {
      const cancel = this.#clock.later(LEASE_DURATION_MS, done)
      void Promise.all(
        others.map(({ listens, member }) =>
          listens ? (this.#neighbours?.greet(member.id) ?? false) : false,
        ),
      ).then((all) => {
        if (!all.every(Boolean)) return
        cancel()
        done()
      })
    })
  }
  /**
   * Runs a task repeatedly, each time `pauseMs()` milliseconds after the previous run ended or
   * failed. Errors are ignored: if no renewal succeeds, `fresh` becomes false after `FRESH_MS`.
   */
  #repeat(pauseMs: () => number, run: () => Promise<void>): void {
    const cancel = this.#clock.later(pauseMs(), () => {
      this.#timers.delete(cancel)
      void run()
        .catch(() => {})
        .then(() => {
          if (!this.#stopped) this.#repeat(pauseMs, run)
        })
    })
    this.#timers.add(cancel)
  }
  #stopTimers(): void {
    this.#stopped = true
    for (const cancel of this.#timers) cancel()
  }
}
