/** Commands to a session that no client sends, what the edge adds to its rows, and what it answers to reads of its owner. */
import type { CompactionPolicy } from '../agents.ts'
import type { ExchangeOpening } from '../channels/exchange.ts'
import type { Open } from '../common.ts'
import type { Interaction } from '../interaction/shapes.ts'
import type { RunCommands } from '../internal.ts'
import type { Block } from './blocks.ts'
import type { TurnWork } from './bookkeeping.ts'
import type { Defined, TurnDefinition } from './definition.ts'
import type { CompactionProgress, Session } from './shapes.ts'

/** All are total: late, repeated or foreign, they change nothing. */
export type SessionCommands = {
  'job.settled': RunCommands['job.settled']
  'job.retried': RunCommands['job.retried']
  /** From a question that this session opened, after every change of it, in the same commit. */
  'interaction.changed': { input: { interaction: Interaction }; reply: undefined }
  /** From a run or a channel of the same shard: a turn of theirs. They have their own admission. */
  'turn.open': { input: TurnOpening; reply: undefined }
  /** From whoever does the errand of an exchange: its turn, in a session that is made when there is none. Not total: a session that went this moment refuses it. */
  'exchange.open': { input: ExchangeOpening; reply: { readonly session_id: string } }
  /** From the newest session of a key to the first one. */
  'session.succeed': { input: { generation: number }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
interface TurnOpening {
  readonly turn_id: string
  readonly owner: { readonly run_id: string; readonly step_key: string } | { readonly channel_exchange_id: string }
  readonly attempt: number
  readonly content: readonly Block[]
  readonly definition: TurnDefinition
  readonly asker: TurnWork['asker']
  readonly output_schema?: Open
  readonly metadata?: Open
}

/** The session that a request is about, found by the edge. `generation`: how many sessions of the key were before it. */
export interface Place {
  readonly root: string
  readonly generation: number
  readonly session_key: string
  readonly agent_id: string
  readonly agent_name: string
  /** Default of new sessions. */
  readonly compaction_policy?: CompactionPolicy
}
/** What the edge adds to an invocation and to the creation of a session. */
export interface Placing { readonly place: Place }
/** What the edge adds to whatever may start a turn. */
export type { Defined }
/** SHA-256 of what a nudge says, hex. */
export interface Hashed { readonly content_hash: string }

/** Answer to the read `standing`: whether the session lives, and what an edge must know before it sends a turn. */
export interface Standing {
  readonly exists: boolean
  /** Deleted, or idle for longer than it is kept. */
  readonly gone: boolean
  /** Of the newest session of the key, as far as its first session knows. */
  readonly generation: number
  readonly session?: Session
}
/** Answer to the read `detail`. */
export interface Compacting { readonly compaction: CompactionProgress }
