/**
 * The shards that this node owns. The host takes over the shards that are assigned to this node and
 * that no other live node owns. It gracefully releases the shards that are assigned to another live
 * node. Each shard has one ownership record, changed only by compare-and-set.
 */

import { assignShards } from './cluster/assignment.ts'
import { FailedTakeovers } from './cluster/failed-takeovers.ts'
import type { Membership } from './cluster/membership.ts'
import type { HostDeps } from './deps.ts'
import { NewerRelease } from './memory/codec.ts'
import type { Registry } from './ports.ts'
import { Quarantine } from './quarantine.ts'
import { Shard } from './shard.ts'

interface Owner {
  readonly node: string
  readonly epoch: number
}
interface Recorded {
  readonly owner: Owner
  readonly revision: number
}

/**
 * Gauges of one shard. `checkpoint_age` is in seconds. The job counts cover the queues in memory,
 * which normally include all queues with work.
 */
export interface ShardGauges {
  readonly name: string
  readonly mailboxMessages: number
  readonly actors: number
  readonly checkpoint_age: number
  readonly jobs_waiting: number
  readonly jobs_leased: number
}

export class Host {
  readonly #deps: HostDeps
  readonly #registry: Registry
  readonly #membership: Membership
  readonly #shards = new Map<string, Shard>()
  readonly #busy = new Set<string>()
  readonly #failed: FailedTakeovers
  readonly #leaving = new Map<string, Promise<void>>()
  #stopped = false

  constructor(deps: HostDeps, registry: Registry, membership: Membership) {
    this.#deps = { ...deps, quarantine: new Quarantine() }
    this.#failed = new FailedTakeovers(deps.node)
    this.#registry = registry
    this.#membership = membership
    membership.reportShards(() => [...this.#shards.keys()])
  }
  /** Returns the names of the shards that this node owns and serves. */
  owned(): string[] {
    return [...this.#shards].filter(([, shard]) => shard.open).map(([name]) => name)
  }
  /** Returns the shards that this node fails to take over, with the reasons, as short texts. */
  failures(): readonly string[] {
    return this.#failed.reports(this.#deps.clock.elapsed())
  }

  /**
   * Returns the last acknowledged sequence of a partition if this node serves all shards of the
   * partition and its lease is fresh. No other node can then have written to the partition.
   * Otherwise, returns undefined.
   */
  end(partition: number): number | undefined {
    if (!this.#membership.fresh()) return undefined
    let last = 0
    for (let shard = 0; shard < this.#deps.shards; shard++) {
      const mine = this.#shards.get(`${partition}.${shard}`)
      if (!mine?.open) return undefined
      last = Math.max(last, mine.position.sequence)
    }
    return last
  }

  /** Computes the gauges of the served shards. Called whenever the metrics are read. */
  gauges(): ShardGauges[] {
    return [...this.#shards]
      .filter(([, shard]) => shard.open)
      .map(([name, shard]) => {
        const gauges = {
          name,
          mailboxMessages: shard.mailboxMessages,
          actors: shard.instances.size,
          checkpoint_age: shard.checkpointer.age / 1000,
          jobs_waiting: 0,
          jobs_leased: 0,
        }
        for (const { kind, actor, state } of shard.instances.all()) {
          if (kind !== 'queue') continue
          const depth = actor.ask?.['depth']?.(state as never, undefined as never, 0) as
            | { waiting: number; leased: number }
            | undefined
          gauges.jobs_waiting += depth?.waiting ?? 0
          gauges.jobs_leased += depth?.leased ?? 0
        }
        return gauges
      })
  }

  /**
   * Compares the recorded owner of each shard with the assigned one, and starts the necessary
   * takeovers and releases. Called in every membership round, after the records were read.
   */
  async round(): Promise<void> {
    if (this.#stopped) return
    const nodes = this.#membership.members('shards')
    const live = new Set(nodes.map(({ id }) => id))
    const entries = new Map<string, Recorded>(
      (await this.#registry.list('shard.')).map(({ key, value, revision }) => [
        key.slice('shard.'.length),
        { owner: JSON.parse(value) as Owner, revision },
      ]),
    )
    const owners = assignShards(nodes, this.#names())
    for (const name of this.#names()) {
      if (this.#busy.has(name)) continue
      const entry = entries.get(name)
      const mine = this.#shards.get(name)
      const should = owners.get(name) === this.#deps.node
      if (!should) this.#failed.delete(name)
      if (mine && entry && entry.owner.node !== this.#deps.node)
        this.#giveUp(name, 'the ownership record names another node')
      else if (mine && !should && this.#membership.fresh())
        void this.#exclusively(name, () => this.#release(name, entry?.revision ?? 0))
      // The NATS servers lost their in-memory data, and possibly the newest snapshots as well. The
      // shard is taken over again from the data that is still stored.
      else if (mine && !entry) this.#giveUp(name, 'the ownership record is missing')
      else if (!mine && !should && entry?.owner.node === this.#deps.node) {
        // A takeover or a release failed halfway. The record is cleared, because other nodes never
        // take a shard that a live node seems to own.
        void this.#exclusively(name, async () => {
          await this.#record(name, entry.owner.epoch, entry.revision, '')
        })
      } else if (
        !mine &&
        should &&
        this.#free(name, entry, live) &&
        this.#failed.permits(name, this.#deps.clock.elapsed())
      ) {
        void this.#exclusively(name, () => this.#acquire(name, entry))
      }
    }
  }
  /**
   * Whether no other live node owns a shard.
   * @param entry the shard's ownership record, if the registry has one.
   */
  #free(name: string, entry: Recorded | undefined, live: ReadonlySet<string>): boolean {
    if (!entry) return !this.#membership.isServedElsewhere(name)
    const { node } = entry.owner
    return node === this.#deps.node || node === '' || !live.has(node)
  }
  /** Releases all shards gracefully. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all([...this.#shards.keys()].map((name) => this.#release(name)))
  }
  /** Drops all shards immediately, as a crash would. */
  crash(): void {
    this.#stopped = true
    for (const shard of this.#shards.values()) shard.drop()
    this.#shards.clear()
  }

  #names(): string[] {
    const names: string[] = []
    for (let p = 0; p < this.#deps.partitions; p++)
      for (let s = 0; s < this.#deps.shards; s++) names.push(`${p}.${s}`)
    return names
  }
  async #exclusively(name: string, run: () => Promise<void>): Promise<void> {
    if (this.#busy.has(name)) return
    this.#busy.add(name)
    try {
      await run()
    } catch (error) {
      if (error instanceof NewerRelease) this.#deps.doomed?.(error)
      this.#deps.log.warn(
        { event: 'shard_move_failed', err: error, shard: name },
        'shard takeover or release failed; retrying',
      )
    } finally {
      this.#busy.delete(name)
    }
  }
  async #record(
    name: string,
    epoch: number,
    revision: number,
    node = this.#deps.node,
  ): Promise<boolean> {
    return (
      (await this.#registry.put(
        `shard.${name}`,
        JSON.stringify({ node, epoch } satisfies Owner),
        revision,
      )) !== undefined
    )
  }
  async #acquire(name: string, before: Recorded | undefined): Promise<void> {
    const { node, epoch } = before?.owner ?? { node: '', epoch: 0 }
    if (!(await this.#record(name, epoch + 1, before?.revision ?? 0))) return
    if (node !== '' && node !== this.#deps.node) await this.#membership.waitUntilStale(node)
    const [partition = 0, number = 0] = name.split('.').map(Number)
    const shard: Shard = new Shard(
      this.#deps,
      partition,
      number,
      (reason) => this.#lost(name, reason, shard),
      async () => {
        const found = await this.#registry.get(`shard.${name}`)
        return found !== undefined && (JSON.parse(found.value) as Owner).node === this.#deps.node
      },
    )
    this.#shards.set(name, shard)
    try {
      await this.#membership.renewNow()
      await shard.start(epoch + 1)
      if (this.#shards.get(name) === shard) this.#failed.serve(name, this.#deps.clock.elapsed())
    } catch (error) {
      this.#shards.delete(name)
      const reason = error instanceof Error ? error.message : String(error)
      if (this.#failed.add(name, reason, this.#deps.clock.elapsed())) this.#logFailure(name, error)
      throw error
    }
  }
  #logFailure(name: string, err: unknown): void {
    this.#deps.log.error(
      { event: 'shard_takeover_failing', err, shard: name },
      'shard takeover fails repeatedly; see troubleshooting.md, "A shard is not taken over"',
    )
  }
  /** Removes a shard that gave itself up. It is then taken over again. */
  #lost(name: string, reason: string, shard: Shard): void {
    this.#deps.log.warn({ event: 'shard_lost', shard: name, reason }, 'shard lost')
    if (this.#shards.get(name) !== shard) return
    this.#shards.delete(name)
    if (this.#failed.lose(name, reason, this.#deps.clock.elapsed()))
      this.#logFailure(name, new Error(reason))
  }
  /** Gives up a shard whose ownership record changed. */
  #giveUp(name: string, reason: string): void {
    this.#deps.log.warn({ event: 'shard_lost', shard: name, reason }, 'shard lost')
    this.#shards.get(name)?.drop()
    this.#shards.delete(name)
    this.#failed.delete(name)
  }
  /** Releases a shard gracefully. Concurrent calls share one release. */
  #release(name: string, revision?: number): Promise<void> {
    const leaving =
      this.#leaving.get(name) ??
      this.#leave(name, revision).finally(() => this.#leaving.delete(name))
    this.#leaving.set(name, leaving)
    return leaving
  }
  async #leave(name: string, revision?: number): Promise<void> {
    const shard = this.#shards.get(name)
    if (!shard) return
    await shard.stop()
    this.#shards.delete(name)
    const current =
      revision ?? (await this.#registry.get(`shard.${name}`).catch(() => undefined))?.revision ?? 0
    await this.#record(name, shard.position.epoch, current, '').catch(() => false)
    this.#deps.log.info({ event: 'shard_released', shard: name }, 'shard released')
  }
}
