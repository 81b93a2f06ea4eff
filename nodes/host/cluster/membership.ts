/**
 * Which nodes live and which node should own which shard. A node renews one record; others judge it by their own clock:
 * a record that has not changed for `LEASE` ms belongs to a dead node, and one that has not for `GONE` ms when the servers
 * know of nobody who listens in its name: a process that was killed. No time stamps are compared between machines.
 *
 * Invariants:
 * M1. A node whose own renewal is nearly as old as `GONE` says so (`fresh`), and answers nothing from memory alone. So whoever
 *     is judged too early, because it has lost its connection only, is slow for a moment and never wrong.
 * M2. Ownership recorded here is an intention; the journal's fence is what excludes a stale owner.
 *     A record is judged as it was when it was last asked for: a judge that stood still has seen no silence.
 * M3. A node that was away looks what became of its shards before it calls itself fresh again. Its renewals wait for no such
 *     look: a node that has much to do would seem to be away because it looks slowly.
 * M4. The registry may forget everything: a record that is gone counts until its lease would have lapsed. A node's record names
 *     the shards that it serves, so that nobody takes one of a living node when the record of the shard is gone.
 * M5. Who believes to have no others tells nobody anything, so a node that joins waits until all others know of it: they have
 *     answered its greeting, or their belief must have ended.
 */
import { hashOf } from '../../../protocol/subjects.ts'
import { idInUse, rivalIn, type Instance } from './node-id.ts'
import type { Clock, Registry } from '../ports.ts'
import { GONE, LEASE, RENEW } from '../timing.ts'

/** Milliseconds a node believes in itself, and to have no others: less than others do, because clocks do not run equally fast. */
const [FRESH, TRUST] = [1100, 1800]

export type RoleName = 'gateway' | 'shards' | 'views' | 'executor'
export interface Member {
  readonly id: string
  readonly roles: readonly RoleName[]
}
/**
 * `listens`: it answers when asked whether it is there; releases that do not are not asked. `shards`: those it serves. `stops`:
 * why it takes no writes.
 */
interface NodeRecord extends Member, Partial<Instance> {
  readonly beat: number
  readonly listens?: true
  readonly shards?: readonly string[]
  readonly stops?: readonly string[]
}
interface Observed {
  readonly member: Member
  readonly beat: number
  readonly value: string
  readonly changed: number
  readonly listens: boolean
  readonly shards: readonly string[]
  readonly stops: readonly string[]
  gone: boolean
}
/** The id of a node as one process holds it. */
export interface Claimed {
  readonly self: Instance
  /** Revision of the record that it wrote. */
  readonly revision: number
  /** Told when another process holds the id. */
  superseded(fault: Error): void
}
/** How nodes reach each other, past the registry. */
export interface Neighbours {
  /** Whether the servers know of nobody who listens in the name of a node. False also when that cannot be told. */
  nobody(id: string): Promise<boolean>
  /** Tell a node that this one has joined. True once it is `unsure`, or will be before it hears anything again. */
  greet(id: string): Promise<boolean>
}

export class Membership {
  readonly #registry: Registry
  readonly #clock: Clock
  readonly #self: Member
  readonly #neighbours: Neighbours | undefined
  #observed = new Map<string, Observed>()
  #serves: () => readonly string[] = () => []
  #stops: () => readonly string[] = () => []
  #revision = 0
  #beat = 0
  #renewed = Number.NEGATIVE_INFINITY
  #looked = Number.NEGATIVE_INFINITY
  #unsure = Number.NEGATIVE_INFINITY
  /** How often it was away, and how often it had been when it last looked what that had come to (M3). */
  #absences = 0
  #known = 0
  readonly #timers = new Set<() => void>()
  /** The last renewal, and the next one that somebody waits for. */
  #renewing: Promise<unknown> = Promise.resolve()
  #telling: Promise<void> | undefined
  #stopped = false
  #ended = 0
  #claimed: Claimed | undefined

  /** @param neighbours given by a node that listens in its own name. */
  constructor(registry: Registry, clock: Clock, self: Member, neighbours?: Neighbours) {
    this.#registry = registry
    this.#clock = clock
    this.#self = self
    this.#neighbours = neighbours
  }

  /**
   * Join, and keep renewing. Resolves when every live node must know of this one: only then may it rely on being told (M5).
   * @param onRound called after every look at the others.
   */
  async start(onRound: () => Promise<void>): Promise<void> {
    const joined = await this.#renew()
    await this.#look()
    this.#renewed = joined
    this.#repeat(
      () => RENEW,
      async () => {
        const started = await this.#inTurn()
        if (!this.#lately(FRESH)) this.#absences++
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
  /** Renew a record that was claimed for this process, and stop when another process has claimed it. Called before `start`. */
  hold(claimed: Claimed): void {
    this.#claimed = claimed
    this.#revision = claimed.revision
  }
  /** Have the own record name the shards that this node serves, from the next renewal on. */
  serve(shards: () => readonly string[]): void {
    this.#serves = shards
  }
  /** Have the own record say why this node takes no writes. */
  report(stops: () => readonly string[]): void {
    this.#stops = stops
  }
  /** Why live nodes, this one included, take no writes. */
  stops(): readonly string[] {
    const live = [...this.#observed.values()].filter((seen) => this.#alive(seen))
    return [...new Set([...this.#stops(), ...live.flatMap((seen) => seen.stops)])]
  }
  /** Whether another live node says that it serves a shard. */
  served(shard: string): boolean {
    return [...this.#observed.values()].some(
      (seen) =>
        seen.member.id !== this.#self.id && seen.shards.includes(shard) && this.#alive(seen),
    )
  }
  /** Renew the own record now, once for all who ask for it: others know then what it says. */
  tell(): Promise<void> {
    this.#telling ??= this.#renewing.then(async () => {
      this.#telling = undefined
      await this.#inTurn()
    })
    return this.#telling
  }
  /** One renewal after the other: two at once would each find the record changed by the other. */
  #inTurn(): Promise<number> {
    const renewing = this.#renewing.then(() => this.#renew())
    this.#renewing = renewing.catch(() => {})
    return renewing
  }
  /** Do something again and again, each time so many milliseconds after the last has ended. What fails because the registry cannot be reached is tried again; `fresh` turns false by itself. */
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
  /** Have the others know of this node: at once when all of them answer, else when the belief of those who do not must have ended. */
  #introduce(): Promise<void> {
    const others = this.#others()
    if (others.length === 0) return Promise.resolve()
    return new Promise<void>((done) => {
      const cancel = this.#clock.later(LEASE, done)
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
  /** Leave: others need not wait for the lease to lapse. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const cancel of this.#timers) cancel()
    // A renewal that is under way would bring the record back to life.
    await this.#renewing
    // Not deleted: a record that is merely gone says nothing (M4).
    await this.#registry
      .put(
        `node.${this.#self.id}`,
        JSON.stringify({ id: this.#self.id, roles: [], beat: ++this.#beat } satisfies NodeRecord),
        this.#revision,
      )
      .catch(() => {})
  }
  /** Whether the own record was renewed lately enough to be believed by others, and what became of its shards while it was not is known. */
  fresh(): boolean {
    return this.#known === this.#absences && this.#lately(FRESH)
  }
  #lately(ms: number): boolean {
    return this.#clock.elapsed() - this.#renewed < ms
  }
  /** Live nodes with a role, this one included. */
  members(role: RoleName): readonly Member[] {
    return [...this.#observed.values()]
      .filter(
        (seen) =>
          seen.member.roles.includes(role) &&
          (seen.member.id === this.#self.id || this.#alive(seen)),
      )
      .map(({ member }) => member)
  }
  /** Whether no other node lives, as far as can be known: false whenever there is doubt. */
  alone(): boolean {
    const now = this.#clock.elapsed()
    return (
      this.#lately(TRUST) &&
      now - this.#looked < TRUST &&
      now - this.#unsure >= LEASE &&
      this.#others().length === 0
    )
  }
  /** Somebody has joined, or may have while nothing could be heard: nobody is thought to be alone until that must have been seen. */
  unsure(): void {
    this.#unsure = this.#clock.elapsed()
  }
  /** How many lives of other gateways were seen to end: by leaving, by silence, or by beginning anew under the same name. */
  ended(): number {
    return this.#ended
  }
  /** The others that have a lease, those included of which the servers know nobody. */
  #others(): Observed[] {
    const others: Observed[] = []
    for (const seen of this.#observed.values())
      if (seen.member.id !== this.#self.id && this.#leased(seen)) others.push(seen)
    return others
  }
  #leased({ member, changed }: Observed): boolean {
    return member.roles.length > 0 && this.#looked - changed < LEASE
  }
  /** Look again now, for a decision that must not miss a node that has just joined. */
  refresh(): Promise<void> {
    return this.#look()
  }

  /**
   * Resolves when a node that was found dead cannot believe in itself any more: it may have renewed its record between that look
   * and what was done because of it. Whoever takes something from it calls this once it has been taken.
   */
  async buried(id: string): Promise<void> {
    await this.#look()
    if (this.#alive(this.#observed.get(`node.${id}`)))
      await new Promise<void>((over) => this.#clock.later(GONE, over))
  }
  /** Milliseconds until the next round: less when somebody's silence comes to mean something before. */
  #rest(): number {
    const since = this.#clock.elapsed()
    const ends = [...this.#observed.values()]
      .filter((seen) => this.#alive(seen))
      .flatMap(({ changed }) => [changed + GONE - since, changed + LEASE - since])
    return Math.min(RENEW, ...ends.filter((ms) => ms > 0))
  }
  #alive(seen: Observed | undefined): boolean {
    return seen !== undefined && !seen.gone && this.#leased(seen)
  }

  /** Renew the own record. Gives the time from which that counts. */
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
    } satisfies NodeRecord)
    let revision = await this.#registry.put(key, value, this.#revision)
    if (revision === undefined) {
      const found = await this.#registry.get(key)
      this.#yield(found?.value)
      revision = await this.#registry.put(key, value, found?.revision ?? 0)
    }
    if (revision === undefined) throw new Error('the own membership record could not be renewed')
    this.#revision = revision
    return started
  }
  /** End when the own record names another process: this one was away for so long that it was taken for dead. @throws StartFault */
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
    // A change is as old as its sight at most: counted from the question, a lease would seem to lapse before its owner thinks so.
    const now = this.#clock.elapsed()
    const lived = this.members('gateway')
    this.#looked = asked
    const next = new Map<string, Observed>()
    for (const { key, value } of entries) {
      const before = this.#observed.get(key)
      const record = JSON.parse(value) as NodeRecord
      const { id, roles, beat, listens = false, shards = [], stops = [] } = record
      if (before && beat < before.beat && before.member.roles.includes('gateway')) this.#ended++
      next.set(
        key,
        before?.value === value
          ? before
          : {
              member: { id, roles },
              beat,
              value,
              changed: now,
              listens,
              shards,
              stops,
              gone: false,
            },
      )
    }
    for (const [key, seen] of this.#observed)
      if (!next.has(key) && asked - seen.changed < LEASE) next.set(key, seen)
    this.#observed = next
    await Promise.all([...next.values()].map((seen) => this.#suspect(seen)))
    const live = new Set(this.members('gateway').map(({ id }) => id))
    this.#ended += lived.filter(({ id }) => !live.has(id)).length
    // A record that stays dead is garbage: anyone may remove it once it has been silent for a minute.
    for (const [key, { changed, member }] of next)
      if (now - changed > 60_000 && member.id !== this.#self.id)
        void this.#registry.delete(key).catch(() => {})
  }
  /** Ask for a node that is silent for longer than it believes in itself: one that died need not be waited for any longer. */
  async #suspect(seen: Observed): Promise<void> {
    const silent = this.#looked - seen.changed
    if (
      !this.#neighbours ||
      !seen.listens ||
      silent < GONE ||
      !this.#alive(seen) ||
      seen.member.id === this.#self.id
    )
      return
    seen.gone = await this.#neighbours.nobody(seen.member.id)
  }
}

/**
 * The node that should own each shard: of those that still have room, the one with the highest hash of (node, shard)
 * (rendezvous hashing, Thaler and Ravishankar 1996; with a bound on the load as in Mirrokni, Thorup and Zadimoghaddam 2018).
 * Every node computes the same; no node has more than its share, rounded up.
 */
export function assignment(
  nodes: readonly Member[],
  shards: readonly string[],
): ReadonlyMap<string, string> {
  const room = new Map(nodes.map(({ id }) => [id, Math.ceil(shards.length / nodes.length)]))
  const owners = new Map<string, string>()
  for (const shard of shards) {
    let best: { id: string; weight: number } | undefined
    for (const [id, left] of room) {
      const weight = mixed(hashOf(`${shard}@${id}`))
      if (left > 0 && (!best || weight > best.weight || (weight === best.weight && id > best.id)))
        best = { id, weight }
    }
    if (!best) break
    owners.set(shard, best.id)
    room.set(best.id, (room.get(best.id) ?? 1) - 1)
  }
  return owners
}

/** Names of nodes often differ in one character only; every bit of their hash must tell (the finalizer of MurmurHash3). */
function mixed(hash: number): number {
  const once = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return (twice ^ (twice >>> 16)) >>> 0
}
