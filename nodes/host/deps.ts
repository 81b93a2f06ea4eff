/** What every part of the shard host is given. */
import type { AnyActor } from '../../actors/actor.ts'
import type { Log } from '../../gateway/ports.ts'
import type { Address, Command, Kind } from '../../protocol/entry.ts'
import type { Code, Refusal } from '../../protocol/errors.ts'
import type { WorkerTiming } from '../../protocol/workers/socket.ts'
import type { Quarantine } from './quarantine.ts'
import type { Blobs, Bus, Clock, Journal, Random, Snapshots } from './ports.ts'
import type { Recent } from './memory/recent.ts'

/** The world of the shard host. */
export interface HostDeps {
  readonly node: string
  readonly kinds: Readonly<Record<Kind, AnyActor>>
  readonly partitions: number
  readonly shards: number
  readonly timing: WorkerTiming
  readonly journal: Journal
  readonly snapshots: Snapshots
  readonly blobs: Blobs
  readonly bus: Bus
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly measure: Measure
  /** Tell people outside the service about a record; false: try again. Absent: nobody is told. */
  notify?(notice: Notice): Promise<boolean>
  /** Told when this release cannot read what is stored: the node must not go on. */
  doomed?(error: Error): void
  /** Actors of this node that are left alone for a while; absent: none is. */
  readonly quarantine?: Quarantine
  /** Why nothing may be appended to the journal of a partition now; absent or undefined: it may. */
  stopped?(partition: number): WriteStop | undefined
  /** Told that a partition's journal lacks entries, and how that shows. */
  damaged?(partition: number, reason: string): void
  /** Where views of this process find what was committed. */
  readonly recent?: Recent
  /** Whether this node's own lease is fresh: only then may it answer reads. */
  fresh(): boolean
}
/** Why changes are refused: the code that clients are answered with, and a sentence for the operator. */
export interface WriteStop {
  readonly code: Extract<Code, 'storage_full' | 'journal_damaged'>
  readonly reason: string
}
/** Something that people should hear of. `id` is the same however often it is told. */
export interface Notice {
  readonly id: string
  readonly about: 'requested' | 'changes_requested' | 'submitted'
  readonly of: Address
  readonly record: unknown
}
/** Numbers the host reports. */
interface Measure {
  commit(seconds: number, commands: number): void
  command(kind: string, outcome: string): void
  /** Jobs were offered to gateways. */
  offer(offered: number, taken: number): void
}
/** Answer of a shard: the reply with its cursor's commit, a refusal, or that somebody else owns the shard. */
export type ShardAnswer = { readonly reply: unknown } | Refusal | { readonly not_owner: true }
export const notOwner: ShardAnswer = { not_owner: true }

/** Message to the owner of a shard (`subjects.shard`). */
export type ShardMessage =
  | { readonly type: 'command'; readonly command: Command }
  | { readonly type: 'commands'; readonly commands: readonly Command[] }
  | { readonly type: 'ask'; readonly to: Address; readonly name: string; readonly input: unknown }
