/**
 * The context that the parts of a shard share. The shard creates one context and passes it to each
 * part. A part receives its other dependencies as additional constructor parameters.
 *
 * Invariants:
 * X1. The context gives a part no access to other parts, the mailbox or the loop.
 * X2. The context does not allow a part to change `position`, or to load or evict actors. Only the
 *     shard's loop, its commits and its takeover can, with an `OwnerContext`.
 */
import type { Address, Command } from '../../protocol/entry.ts'
import type { HostDeps, ShardAnswer } from './deps.ts'
import type { ActorCache } from './memory/actor-cache.ts'
import type { ShardTime } from './shard-time.ts'

export interface ShardContext {
  readonly deps: HostDeps
  /** Number of the partition whose journal contains the shard's subject. */
  readonly partition: number
  readonly shard: number
  /** The shard as `partition.shard`, for logs and ids. */
  readonly name: string
  /** Epoch of this owner, and sequence of the last envelope. Parts must not store a copy. */
  readonly position: Readonly<ShardPosition>
  readonly instances: Pick<ActorCache, 'all' | 'loaded'>
  readonly time: ShardTime
}

/** The position of a shard's owner in the shard's subject of the journal. */
export interface ShardPosition {
  /** Epoch of the envelopes that this owner writes. 0 before the takeover. */
  epoch: number
  /** Sequence of the last envelope of the subject; 0 if the subject is empty. */
  sequence: number
}

/** The context for the loop, the commits and the takeover of the shard. */
export interface OwnerContext extends ShardContext {
  readonly position: ShardPosition
  readonly instances: ActorCache
}

/** Access to the actors of the shard, for parts that act on its behalf. */
export interface ActorRequests {
  /** Decides a command after the messages that wait in the mailbox. */
  submit(command: Command): Promise<ShardAnswer>
  /** Answers a query from committed state, after the messages that wait in the mailbox. */
  ask(to: Address, name: string, input: unknown): Promise<ShardAnswer>
  /**
   * Answers a query immediately, from state that may be ahead of the journal. The result may be
   * used only as a hint, or after the commit. Returns undefined when the actor is not in memory, or
   * has no such query.
   */
  peek(to: Address, name: string, input: unknown): { readonly result: unknown } | undefined
}

/**
 * Schedules `run` for a moment when no append is in flight. Memory is then not ahead of the
 * journal, apart from soft events.
 * @param fail called instead of `run` when the shard was given up.
 * @param ahead whether to run the task before all waiting messages, which may be many.
 */
export type ScheduleTask = (run: () => void, fail?: () => void, ahead?: boolean) => void
