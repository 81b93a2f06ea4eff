/**
 * The registry records of all nodes, as this node has read them, and which of the nodes are alive.
 * The invariants M2 and M4 of `membership.ts` apply.
 *
 * - The lease of a node expires `LEASE_DURATION_MS` after the last observed change of its record.
 * - A node is suspected when its record has not changed for `DEAD_WITHOUT_SUBSCRIBER_MS`. A
 *   suspected node without a subscriber is dead before its lease expires.
 */
import type { Clock, Registry } from '../ports.ts'
import { DEAD_WITHOUT_SUBSCRIBER_MS, LEASE_DURATION_MS } from '../timing.ts'
import type { Neighbours } from './neighbours.ts'
import { type Observed, parseNodeRecord } from './node-record.ts'

/**
 * Milliseconds for which the record of a dead node must be unchanged. Then any node may delete it.
 */
const KEEP_DEAD_MS = 60_000

export class ObservedNodes {
  readonly #registry: Registry
  readonly #clock: Clock
  /** The id of this node. */
  readonly #self: string
  readonly #neighbours: Pick<Neighbours, 'hasNoSubscriber'> | undefined
  #nodes: ReadonlyMap<string, Observed> = new Map()
  #readAt = Number.NEGATIVE_INFINITY
  #endedGateways = 0

  /** @param neighbours absent if no node can be probed. */
  constructor(
    registry: Registry,
    clock: Clock,
    self: string,
    neighbours?: Pick<Neighbours, 'hasNoSubscriber'>,
  ) {
    this.#registry = registry
    this.#clock = clock
    this.#self = self
    this.#neighbours = neighbours
  }
  /** When the last reading of the records began, in monotonic milliseconds. */
  get readAt(): number {
    return this.#readAt
  }
  /** Number of ends of other gateways that were detected. */
  get endedGateways(): number {
    return this.#endedGateways
  }
  /** Returns this node, and the other nodes that are alive. */
  members(): Observed[] {
    return [...this.#nodes.values()].filter((seen) => this.#isSelf(seen) || this.#isAlive(seen))
  }
  /** Returns the nodes that are alive according to their records. */
  alive(): Observed[] {
    return [...this.#nodes.values()].filter((seen) => this.#isAlive(seen))
  }
  isAlive(id: string): boolean {
    const seen = this.#nodes.get(`node.${id}`)
    return seen !== undefined && this.#isAlive(seen)
  }
  /** Returns the other nodes whose lease has not expired, including those without a subscriber. */
  others(): Observed[] {
    return [...this.#nodes.values()].filter((seen) => this.#isOther(seen))
  }
  /** Whether `others` returns any node. It is called for each message, so it creates no list. */
  hasOthers(): boolean {
    for (const seen of this.#nodes.values()) if (this.#isOther(seen)) return true
    return false
  }
  /**
   * Returns the milliseconds until the next live node reaches a silence limit, or Infinity if all
   * of them have reached the limits.
   */
  msUntilLimit(): number {
    const now = this.#clock.elapsed()
    const limits = [DEAD_WITHOUT_SUBSCRIBER_MS, LEASE_DURATION_MS]
    const ends = this.alive().flatMap(({ changedAt }) =>
      limits.map((limit) => changedAt + limit - now),
    )
    return Math.min(Infinity, ...ends.filter((ms) => ms > 0))
  }

  /** Reads the records, and probes the suspected nodes. */
  async read(): Promise<void> {
    const askedAt = this.#clock.elapsed()
    const entries = await this.#registry.list('node.')
    // The time of a change is that of the answer. With the time of the request, a lease could
    // expire here before its owner considers it expired.
    const now = this.#clock.elapsed()
    const gateways = this.#gateways()
    this.#readAt = askedAt
    const nodes = new Map<string, Observed>()
    for (const { key, value } of entries) {
      const before = this.#nodes.get(key)
      if (before?.value === value) {
        nodes.set(key, before)
        continue
      }
      const seen = parseNodeRecord(value, now)
      if (before && seen.beat < before.beat && before.member.roles.includes('gateway'))
        this.#endedGateways++
      nodes.set(key, seen)
    }
    for (const [key, seen] of this.#nodes)
      if (!nodes.has(key) && askedAt - seen.changedAt < LEASE_DURATION_MS) nodes.set(key, seen)
    this.#nodes = nodes
    await Promise.all([...nodes.values()].map((seen) => this.#probeIfSuspected(seen)))
    const live = new Set(this.#gateways())
    this.#endedGateways += gateways.filter((id) => !live.has(id)).length
    this.#deleteDead(nodes, now)
  }
  #gateways(): string[] {
    return this.members().flatMap(({ member }) =>
      member.roles.includes('gateway') ? [member.id] : [],
    )
  }
  async #probeIfSuspected(seen: Observed): Promise<void> {
    const silentMs = this.#readAt - seen.changedAt
    if (
      !this.#neighbours ||
      !seen.listens ||
      silentMs < DEAD_WITHOUT_SUBSCRIBER_MS ||
      !this.#isAlive(seen) ||
      this.#isSelf(seen)
    )
      return
    seen.unsubscribed = await this.#neighbours.hasNoSubscriber(seen.member.id)
  }
  #deleteDead(nodes: ReadonlyMap<string, Observed>, now: number): void {
    for (const [key, seen] of nodes)
      if (now - seen.changedAt > KEEP_DEAD_MS && !this.#isSelf(seen))
        void this.#registry.delete(key).catch(() => {})
  }

  #isSelf({ member }: Observed): boolean {
    return member.id === this.#self
  }
  #isOther(seen: Observed): boolean {
    return !this.#isSelf(seen) && this.#hasLease(seen)
  }
  #isAlive(seen: Observed): boolean {
    return !seen.unsubscribed && this.#hasLease(seen)
  }
  #hasLease({ member, changedAt }: Observed): boolean {
    return member.roles.length > 0 && this.#readAt - changedAt < LEASE_DURATION_MS
  }
}
