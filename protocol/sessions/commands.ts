/** Commands to a session that no client sends, what the edge adds to its rows, and what it answers to reads of its owner. */
import type { CompactionPolicy } from '../agents/schema.ts'
import type { SessionSeed } from './rows.ts'
import type { ExchangeOpening } from '../channels/exchange.ts'
import type { JsonObject } from '../common.ts'
import type { Interaction } from '../interactions/schema.ts'
import type { RunCommands } from '../internal.ts'
import type { Attached, FileFacts } from './attachments.ts'
import type { Block, ToolResultBlock } from './turns/blocks.ts'
import type { TurnWork } from './bookkeeping.ts'
import type { Defined, TurnDefinition, Unfit } from './turns/definition.ts'
import type { CompactionProgress, Session } from './schema.ts'

/** All are total: late, repeated or foreign, they change nothing. */
export type SessionCommands = {
  'job.settled': RunCommands['job.settled']
  'job.retried': RunCommands['job.retried']
  /** From a question that this session opened, after every change of it, in the same commit. */
  'interaction.changed': {
    /** `invalid`: it was cancelled, because targets do not exist. */
    input: { interaction: Interaction; invalid?: true }
    reply: undefined
  }
  /** From a run or a channel: a turn of theirs. They have their own admission. A run is told how it ends (`turn.settled`), also when it cannot begin. */
  'turn.open': { input: TurnOpening; reply: undefined }
  /** From the run whose turn it is: it does not want it any more. It was opened before, because what a run says comes in order. */
  'turn.stop': { input: { turn_id: string }; reply: undefined }
  /** From whoever does the errand of an exchange: its turn, in a session that is made when there is none. Not total: a session that went this moment refuses it. */
  'exchange.open': { input: ExchangeOpening; reply: { readonly session_id: string } }
  /** From the newest session of a key to the first one. */
  'session.succeed': { input: { generation: number }; reply: undefined }
  /** From the edge: bytes are about to be stored. A repeat of an upload that was stored is answered with it. */
  'attachment.reserve': { input: Reserving; reply: { artifact_id: string; attached?: Attached } }
  wake: { input: unknown; reply: undefined }
}
/** `key`: the caller's idempotency key with the caller; `hash`: stands for bytes, name and hint. */
interface Reserving {
  readonly file: FileFacts
  readonly hash: string
  readonly key?: string
}
/** The reply to appended messages. `compacting`: they began a pass, whose end the edge waits for. */
export type Appended = Session & { readonly compacting?: true }
/** What the edge adds to an upload whose bytes are stored. */
export interface Attaching {
  readonly artifact_id: string
}
export interface TurnOpening {
  readonly turn_id: string
  /** Where the session is, and what it is made with when it is not there; absent: it is there. */
  readonly place?: Place
  readonly seed?: Pick<SessionSeed, 'title' | 'visibility' | 'compaction_policy'>
  readonly owner:
    | { readonly run_id: string; readonly step_key: string }
    | { readonly channel_exchange_id: string }
  /** The loop of the run. */
  readonly loop_id?: string
  readonly attempt: number
  readonly content: readonly Block[]
  readonly definition: TurnDefinition
  readonly asker: TurnWork['asker']
  readonly output_schema?: JsonObject
  readonly metadata?: JsonObject
}
/** How a turn of a run has ended, as the run is told. */
export interface TurnReport {
  readonly run_id: string
  readonly turn_id: string
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** What satisfied the schema; without one `text` is what the agent said last. */
  readonly output?: JsonObject
  readonly text?: string
  readonly error_type?: string
  readonly error?: string
  /** One call was made too often. */
  readonly stalled?: {
    readonly tool: string
    readonly duplicate_calls: number
    readonly limit: number
  }
  /** The session ended before the turn could begin: another look finds its successor. */
  readonly again?: true
}
/** What a generation of a turn spent. */
export interface TurnSpending {
  /** The run that has the turn, which is told. */
  readonly run_id?: string
  /** The job; so a repeat is known. */
  readonly usage_id: string
  readonly step_key: string
  readonly tokens: number
  /** Thousandths of a credit. */
  readonly milli: number
  /** Absent in journals of earlier releases. */
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
  /** The answer ended the turn: the run is told of that next. */
  readonly ends?: boolean
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
  /** Whose namespace the key is in, when it is not the agent's: a loop or a workflow. */
  readonly scope_ref_id?: string
  /** A run makes it. */
  readonly of_run?: true
}
/** What the edge adds to an invocation and to the creation of a session. */
export interface Placing {
  readonly place: Place
}
/** What the edge adds to whatever may start a turn. */
export type { Defined }
/** With a key, and for nudges: also why it may start none. */
export type Keyed = Defined | Unfit
/** SHA-256 of what a nudge says, hex. */
export interface Hashed {
  readonly content_hash: string
}

/** Answer to the read `standing`: whether the session lives, and what an edge must know before it sends a turn. */
export interface Standing {
  readonly exists: boolean
  /** Deleted, or idle for longer than it is kept. */
  readonly gone: boolean
  /** Of the newest session of the key, as far as its first session knows. */
  readonly generation: number
  readonly session?: Session
}
/** Of the answer to the read `results`: what a call came to whose row is not committed yet. */
export interface KnownResult {
  readonly turn_id: string
  readonly tool_name: string
  readonly result: ToolResultBlock
}
/** Answer to the read `detail`. */
export interface Compacting {
  readonly compaction: CompactionProgress
}
