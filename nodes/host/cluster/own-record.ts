/**
 * The registry record of this node: its content, its renewal, and its final state. Renewals run one
 * after the other, because each of two concurrent renewals would find the record changed by the
 * other.
 */
import { NEWEST_FORMAT } from '../memory/codec.ts'
import type { Clock, Registry } from '../ports.ts'
import type { Member } from './assignment.ts'
import { type Claimed, idInUse, rivalIn } from './node-id.ts'
import type { NodeRecord } from './node-record.ts'

export class OwnRecord {
  readonly #registry: Registry
  readonly #clock: Clock
  readonly #self: Member
  readonly #listens: boolean
  #shards: () => readonly string[] = () => []
  #stops: () => readonly string[] = () => []
  #claimed: Claimed | undefined
  #revision = 0
  #beat = 0
  /** The latest renewal, which may be in progress. */
  #latest: Promise<unknown> = Promise.resolve()
  /** The next renewal, if callers of `renewNow` are waiting for it. */
  #next: Promise<void> | undefined

  /** @param listens whether this node answers presence probes. */
  constructor(registry: Registry, clock: Clock, self: Member, listens: boolean) {
    this.#registry = registry
    this.#clock = clock
    this.#self = self
    this.#listens = listens
  }
  /** Sets the record that was claimed for this process, which is renewed from now on. */
  useClaim(claimed: Claimed): void {
    this.#claimed = claimed
    this.#revision = claimed.revision
  }
  /** Sets the function that returns the shards that the node serves. */
  reportShards(shards: () => readonly string[]): void {
    this.#shards = shards
  }
  /** Sets the function that returns why the node accepts no writes. */
  reportStops(stops: () => readonly string[]): void {
    this.#stops = stops
  }
  stops(): readonly string[] {
    return this.#stops()
  }

  /**
   * Renews the record after the previous renewal has ended. Returns the start time of the renewal,
   * from which it counts.
   * @throws StartFault if the record belongs to another process.
   */
  renew(): Promise<number> {
    const renewing = this.#latest.then(() => this.#write())
    this.#latest = renewing.catch(() => {})
    return renewing
  }
  /** Renews the record now. Concurrent callers share one renewal. */
  renewNow(): Promise<void> {
    this.#next ??= this.#latest.then(async () => {
      this.#next = undefined
      await this.renew()
    })
    return this.#next
  }
  /** Writes the final record, with which the node leaves the cluster. */
  async withdraw(): Promise<void> {
    // A renewal that arrives after the final record would make the node seem alive again.
    await this.#latest
    // The record loses its roles, but is not deleted: a missing record proves nothing (M4 of
    // `membership.ts`).
    await this.#registry
      .put(
        `node.${this.#self.id}`,
        JSON.stringify({ id: this.#self.id, roles: [], beat: ++this.#beat } satisfies NodeRecord),
        this.#revision,
      )
      .catch(() => {})
  }

  async #write(): Promise<number> {
    const started = this.#clock.elapsed()
    const key = `node.${this.#self.id}`
    const shards = this.#shards()
    const stops = this.#stops()
    const value = JSON.stringify({
      ...this.#self,
      ...this.#claimed?.self,
      beat: ++this.#beat,
      ...(this.#listens && { listens: true }),
      ...(shards.length > 0 && { shards }),
      ...(stops.length > 0 && { stops }),
      reads: NEWEST_FORMAT,
    } satisfies NodeRecord)
    let revision = await this.#registry.put(key, value, this.#revision)
    if (revision === undefined) {
      const found = await this.#registry.get(key)
      this.#requireOwn(found?.value)
      revision = await this.#registry.put(key, value, found?.revision ?? 0)
    }
    if (revision === undefined)
      throw new Error('the membership record of this node could not be renewed')
    this.#revision = revision
    return started
  }
  /**
   * Ends the membership if the record belongs to another process. This process was then away for so
   * long that it was considered dead.
   * @throws StartFault that identifies the other process.
   */
  #requireOwn(value: string | undefined): void {
    const rival = this.#claimed && value !== undefined && rivalIn(value, this.#claimed.self)
    if (!rival) return
    const fault = idInUse(this.#self.id, rival)
    this.#claimed?.superseded(fault)
    throw fault
  }
}
