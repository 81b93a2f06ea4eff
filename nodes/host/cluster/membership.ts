/**
 * Tracks cluster membership: which nodes are alive. `assignment.ts` assigns the shards to these
 * nodes. Each node renews one registry record. A node is dead when its record has not changed for
 * `LEASE_DURATION_MS`, or for `DEAD_WITHOUT_SUBSCRIBER_MS` if the NATS servers report no subscriber
 * for its name. Each node measures these times with its own clock.
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
import { NEWEST_FORMAT } from '../memory/codec.ts'
import type { Clock, Registry } from '../ports.ts'
import { DEAD_WITHOUT_SUBSCRIBER_MS, LEASE_DURATION_MS, RENEWAL_INTERVAL_MS } from '../timing.ts'
import type { Member, RoleName } from './assignment.ts'
import type { Neighbours } from './neighbours.ts'
import type { Claimed } from './node-id.ts'
import { idInUse, rivalIn } from './node-id.ts'
import { type LiveNode, type NodeRecord, type Observed, parseNodeRecord } from './node-record.ts'

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
  readonly #registry: Registry
  readonly #clock: Clock
  readonly #self: Member
  readonly #neighbours: Contact | undefined
  #observed = new Map<string, Observed>()
  #serves: () => readonly string[] = () => []
  #stops: () => readonly string[] = () => []
  #revision = 0
  #beat = 0
  #renewed = Number.NEGATIVE_INFINITY
  #looked = Number.NEGATIVE_INFINITY
  #unsure = Number.NEGATIVE_INFINITY
  /** Number of times that this node was away (M3). */
  #absences = 0
  /** Value of `#absences` at the start of the last ownership check that succeeded. */
  #known = 0
  readonly #timers = new Set<() => void>()
  /** The latest renewal, which may be in progress. */
  #renewing: Promise<unknown> = Promise.resolve()
  /** The next renewal, if callers of `tell` are waiting for it. */
  #announcing: Promise<void> | undefined
  #stopped = false
  #ended = 0
  #claimed: Claimed | undefined

  /** @param neighbours present if this node answers presence probes. */
  constructor(registry: Registry, clock: Clock, self: Member, neighbours?: Contact) {
    this.#registry = registry
    this.#clock = clock
    this.#self = self
    this.#neighbours = neighbours
  }

  /**
   * Joins the cluster and keeps renewing the record of this node. Resolves when no other node can
   * still consider itself alone. Only then can this node rely on receiving messages (M5).
   * @param onRound called in every round, after the records were read.
   */
  async start(onRound: () => Promise<void>): Promise<void> {
    const joined = await this.#renew()
    await this.#look()
    this.#renewed = joined
    this.#repeat(
      () => RENEWAL_INTERVAL_MS,
      async () => {
        const started = await this.#inTurn()
        if (!this.#lately(FRESH_MS)) this.#absences++
        this.#renewed = started
      },
    )
    this.#repeat(
      () => this.#rest(),
      async () => {
        const absences = this.#absences
        await this.#look()
        await onRound()
        this.#known = absences
      },
    )
    await this.#introduce()
  }
  /**
   * Sets the record that was claimed for this process. The membership renews the record, and ends
   * once another process has claimed it. Called before `start`.
   */
  hold(claimed: Claimed): void {
    this.#claimed = claimed
    this.#revision = claimed.revision
  }
  /** Sets the function that returns, for this node's record, the shards that the node serves. */
  serve(shards: () => readonly string[]): void {
    this.#serves = shards
  }
  /** Sets the function that returns, for this node's record, why the node accepts no writes. */
  report(stops: () => readonly string[]): void {
    this.#stops = stops
  }
  /** Returns the reasons why live nodes, including this one, accept no writes. */
  stops(): readonly string[] {
    const live = [...this.#observed.values()].filter((seen) => this.#alive(seen))
    return [...new Set([...this.#stops(), ...live.flatMap((seen) => seen.stops)])]
  }
  /** Whether all live nodes can read this envelope format. */
  allRead(format: number): boolean {
    return [...this.#observed.values()].every(
      (seen) => seen.reads >= format || seen.member.id === this.#self.id || !this.#alive(seen),
    )
  }
  /** Whether another live node reports that it serves a shard. */
  served(shard: string): boolean {
    const { id } = this.#self
    return [...this.#observed.values()].some(
      (seen) => seen.member.id !== id && seen.shards.includes(shard) && this.#alive(seen),
    )
  }
  /**
   * Renews this node's record now, so that other nodes see its current content. Concurrent callers
   * share one renewal.
   */
  tell(): Promise<void> {
    this.#announcing ??= this.#renewing.then(async () => {
      this.#announcing = undefined
      await this.#inTurn()
    })
    return this.#announcing
  }
  /**
   * Renews the record after the previous renewal has ended, because each of two concurrent renewals
   * would find the record changed by the other.
   */
  #inTurn(): Promise<number> {
    const renewing = this.#renewing.then(() => this.#renew())
    this.#renewing = renewing.catch(() => {})
    return renewing
  }
  /**
   * Runs a task repeatedly, each time `rest()` milliseconds after the previous run ended or failed.
   * Errors are ignored: if no renewal succeeds, `fresh` becomes false after `FRESH_MS`.
   */
  #repeat(rest: () => number, run: () => Promise<void>): void {
    const cancel = this.#clock.later(rest(), () => {
      this.#timers.delete(cancel)
      void run()
        .catch(() => {})
        .then(() => {
          if (!this.#stopped) this.#repeat(rest, run)
        })
    })
    this.#timers.add(cancel)
  }
  /**
   * Greets the other nodes. Resolves when all of them have answered, or after `LEASE_DURATION_MS`
   * at the latest. After that time, no other node can still consider itself alone (M5).
   */
  #introduce(): Promise<void> {
    const others = this.#others()
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
  /** Leaves the cluster, so that other nodes need not wait until the lease expires. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const cancel of this.#timers) cancel()
    // A renewal that arrives after the final record would make the node seem alive again.
    await this.#renewing
    // The record loses its roles, but is not deleted: a missing record proves nothing (M4).
    await this.#registry
      .put(
        `node.${this.#self.id}`,
        JSON.stringify({ id: this.#self.id, roles: [], beat: ++this.#beat } satisfies NodeRecord),
        this.#revision,
      )
      .catch(() => {})
  }
  /**
   * Whether other nodes can rely on this node: its record was renewed recently, and it has checked
   * the ownership of its shards since it was last away.
   */
  fresh(): boolean {
    return this.#known === this.#absences && this.#lately(FRESH_MS)
  }
  #lately(ms: number): boolean {
    return this.#clock.elapsed() - this.#renewed < ms
  }
  /** Returns the live nodes with a role, including this one. */
  members(role: RoleName): readonly Member[] {
    return [...this.#observed.values()]
      .filter(
        (seen) =>
          seen.member.roles.includes(role) &&
          (seen.member.id === this.#self.id || this.#alive(seen)),
      )
      .map(({ member }) => member)
  }
  /** Returns the live nodes, including this one. */
  nodes(): readonly LiveNode[] {
    const now = this.#clock.elapsed()
    return [...this.#observed.values()]
      .filter((seen) => seen.member.id === this.#self.id || this.#alive(seen))
      .map(({ member, changed, shards, stops, about }) => ({
        ...member,
        shards,
        stops,
        about,
        silent_ms: Math.max(0, now - changed),
      }))
  }
  /** Whether it is certain that no other node is alive. */
  alone(): boolean {
    // This is called for each message, so it creates no list.
    for (const seen of this.#observed.values()) if (this.#isOther(seen)) return false
    const now = this.#clock.elapsed()
    const recent = this.#lately(ALONE_MS) && now - this.#looked < ALONE_MS
    return recent && now - this.#unsure >= LEASE_DURATION_MS
  }
  /**
   * Records that a node has joined, or may have joined while this node could not receive messages.
   * `alone` is then false for `LEASE_DURATION_MS`. Meanwhile, this node reads the new record.
   */
  unsure(): void {
    this.#unsure = this.#clock.elapsed()
  }
  /**
   * Returns the number of times that this node has detected the end of another gateway. A gateway
   * ends when it leaves, becomes silent, or restarts under the same name.
   */
  ended(): number {
    return this.#ended
  }
  /** Returns the other nodes whose lease has not expired, including those without a subscriber. */
  #others(): Observed[] {
    return [...this.#observed.values()].filter((seen) => this.#isOther(seen))
  }
  #isOther(seen: Observed): boolean {
    return seen.member.id !== this.#self.id && this.#leased(seen)
  }
  #leased({ member, changed }: Observed): boolean {
    return member.roles.length > 0 && this.#looked - changed < LEASE_DURATION_MS
  }
  /** Reads the records now, for a decision that must not miss a node that has just joined. */
  refresh(): Promise<void> {
    return this.#look()
  }

  /**
   * Resolves when a node that was found dead can no longer consider itself fresh. Callers wait
   * after they have taken over a shard from it, because it may have renewed its record in the
   * meantime.
   */
  async buried(id: string): Promise<void> {
    await this.#look()
    if (this.#alive(this.#observed.get(`node.${id}`)))
      await new Promise<void>((over) => this.#clock.later(DEAD_WITHOUT_SUBSCRIBER_MS, over))
  }
  /**
   * Returns the milliseconds until the next round: `RENEWAL_INTERVAL_MS`, or fewer if another node
   * reaches a silence limit sooner.
   */
  #rest(): number {
    const since = this.#clock.elapsed()
    const limits = [DEAD_WITHOUT_SUBSCRIBER_MS, LEASE_DURATION_MS]
    const ends = [...this.#observed.values()]
      .filter((seen) => this.#alive(seen))
      .flatMap(({ changed }) => limits.map((limit) => changed + limit - since))
    return Math.min(RENEWAL_INTERVAL_MS, ...ends.filter((ms) => ms > 0))
  }
  #alive(seen: Observed | undefined): boolean {
    return seen !== undefined && !seen.gone && this.#leased(seen)
  }

  /** Renews this node's record. Returns its start time, from which the renewal counts. */
  async #renew(): Promise<number> {
    const started = this.#clock.elapsed()
    const key = `node.${this.#self.id}`
    const shards = this.#serves()
    const stops = this.#stops()
    const value = JSON.stringify({
      ...this.#self,
      ...this.#claimed?.self,
      beat: ++this.#beat,
      ...(this.#neighbours && { listens: true }),
      ...(shards.length > 0 && { shards }),
      ...(stops.length > 0 && { stops }),
      reads: NEWEST_FORMAT,
    } satisfies NodeRecord)
    let revision = await this.#registry.put(key, value, this.#revision)
    if (revision === undefined) {
      const found = await this.#registry.get(key)
      this.#yield(found?.value)
      revision = await this.#registry.put(key, value, found?.revision ?? 0)
    }
    if (revision === undefined)
      throw new Error('the membership record of this node could not be renewed')
    this.#revision = revision
    return started
  }
  /**
   * Ends the membership if this node's record belongs to another process. This process was then
   * away for so long that it was considered dead.
   * @throws StartFault that identifies the other process.
   */
  #yield(value: string | undefined): void {
    const rival = this.#claimed && value !== undefined && rivalIn(value, this.#claimed.self)
    if (!rival) return
    this.#stopped = true
    for (const cancel of this.#timers) cancel()
    const fault = idInUse(this.#self.id, rival)
    this.#claimed?.superseded(fault)
    throw fault
  }
  async #look(): Promise<void> {
    const asked = this.#clock.elapsed()
    const entries = await this.#registry.list('node.')
    // The time of a change is that of the answer. With the time of the request, a lease could
    // expire here before its owner considers it expired.
    const now = this.#clock.elapsed()
    const lived = this.members('gateway')
    this.#looked = asked
    const next = new Map<string, Observed>()
    for (const { key, value } of entries) {
      const before = this.#observed.get(key)
      if (before?.value === value) {
        next.set(key, before)
        continue
      }
      const seen = parseNodeRecord(value, now)
      if (before && seen.beat < before.beat && before.member.roles.includes('gateway'))
        this.#ended++
      next.set(key, seen)
    }
    for (const [key, seen] of this.#observed)
      if (!next.has(key) && asked - seen.changed < LEASE_DURATION_MS) next.set(key, seen)
    this.#observed = next
    await Promise.all([...next.values()].map((seen) => this.#suspect(seen)))
    const live = new Set(this.members('gateway').map(({ id }) => id))
    this.#ended += lived.filter(({ id }) => !live.has(id)).length
    // Any node may delete the record of a dead node once the record has been unchanged for one
    // minute.
    for (const [key, { changed, member }] of next)
      if (now - changed > 60_000 && member.id !== this.#self.id)
        void this.#registry.delete(key).catch(() => {})
  }
  /**
   * Probes a node that has been silent for `DEAD_WITHOUT_SUBSCRIBER_MS`, and therefore no longer
   * considers itself fresh. If the node has no subscriber, it counts as dead before its lease
   * expires.
   */
  async #suspect(seen: Observed): Promise<void> {
    const silent = this.#looked - seen.changed
    if (
      !this.#neighbours ||
      !seen.listens ||
      silent < DEAD_WITHOUT_SUBSCRIBER_MS ||
      !this.#alive(seen) ||
      seen.member.id === this.#self.id
    )
      return
    seen.gone = await this.#neighbours.hasNoSubscriber(seen.member.id)
  }
}
