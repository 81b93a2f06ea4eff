/** Dependencies that every part of the shard host receives. */
import type { AnyActor } from '../../actors/actor.ts'
import type { Log } from '../../gateway/ports.ts'
import type { Address, Command, Envelope, Kind } from '../../protocol/entry.ts'
import type { Code, Refusal } from '../../protocol/errors.ts'
import type { WorkerTiming } from '../../protocol/workers/timing.ts'
import type { LocalShards } from './local-shards.ts'
import type { EnvelopeFormat } from './memory/codec.ts'
import type { Recent } from './memory/recent.ts'
import type { Blobs, Bus, Clock, Journal, Random, Snapshots, TurnEnd } from './ports.ts'
import type { Quarantine } from './quarantine.ts'

/** Settings, ports and callbacks of the shard host. */
export interface HostDeps {
  readonly node: string
  readonly kinds: Readonly<Record<Kind, AnyActor>>
  readonly partitions: number
  readonly shards: number
  readonly timing: WorkerTiming
  readonly journal: Journal
  readonly snapshots: Snapshots
  readonly blobs: Blobs
  /**
   * Returns the format in which new envelopes are written. All live nodes can read it. If absent,
   * the format is `NEWEST_FORMAT`. Nodes that read format 2 also support the index of ended actors.
   */
  format?(): EnvelopeFormat
  /** The store from which effects erase files. If absent, `blobs` stores files. */
  readonly files?: Pick<Blobs, 'delete'>
  /** The end of each turn of the event loop. If absent, all work is done in microtasks. */
  readonly turnEnd?: TurnEnd
  readonly bus: Bus
  /** The shards that this process serves. If absent, all shards are reached over the bus. */
  readonly local?: LocalShards | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly measure: Measure
  /**
   * Notifies people outside the service about a record. Returns false when the caller must retry.
   * Absent when no notifications are sent.
   */
  notify?(notice: Notice): Promise<boolean>
  /** Called when this release cannot read stored data, so the node must stop. */
  doomed?(error: Error): void
  /** Actors of this node that are temporarily not woken. If absent, all actors are woken. */
  readonly quarantine?: Quarantine
  /**
   * Returns why appends to the journal of a partition are refused, or undefined when they are
   * allowed. Absent when they are always allowed.
   */
  stopped?(partition: number): WriteStop | undefined
  /** Called when entries are missing from a partition's journal. `reason` describes the gap. */
  damaged?(partition: number, reason: string): void
  /** The newest envelopes, for the views of this process. */
  readonly recent?: Pick<Recent<Envelope | string>, 'keep'>
  /** Whether this node's own lease is fresh. A node answers reads only while it is. */
  fresh(): boolean
}
/** Why writes are refused: the error code that clients receive, and a sentence for the operator. */
export interface WriteStop {
  readonly code: Extract<Code, 'storage_full' | 'journal_damaged'>
  readonly reason: string
}
/** A notification for people. Repeats have the same `id`. */
export interface Notice {
  readonly id: string
  readonly about: 'requested' | 'changes_requested' | 'submitted'
  readonly of: Address
  readonly record: unknown
}
interface Measure {
  commit(seconds: number, commands: number): void
  command(kind: string, outcome: string): void
  /**
   * Records how many jobs were in an answered offer, and how many of them the gateway or executor
   * took.
   */
  offer(offered: number, taken: number): void
}
/** The end of a turn for a host without `turnEnd`: everything runs in microtasks. */
export const microtasks: TurnEnd = {
  decide: queueMicrotask,
  expectResponses: () => {},
  defer: queueMicrotask,
}
/**
 * Answer of a shard: a reply, a refusal, or `not_owner` when this node cannot currently answer for
 * the shard. The sender then retries with the current owner.
 */
export type ShardAnswer = { readonly reply: unknown } | Refusal | { readonly not_owner: true }
export const notOwner: ShardAnswer = { not_owner: true }

/** A command or a query for the owner of a shard. */
export type ShardRequest =
  | { readonly type: 'command'; readonly command: Command }
  | { readonly type: 'ask'; readonly to: Address; readonly name: string; readonly input: unknown }
/** Message to the owner of a shard (`subjects.shard`). */
export type ShardMessage =
  | ShardRequest
  | { readonly type: 'commands'; readonly commands: readonly Command[] }
