/**
 * Internal commands to a session, fields that the gateway adds to client requests, and replies to
 * internal reads.
 */
import type { CompactionPolicy } from '../agents/schema.ts'
import type { ExchangeOpening } from '../channels/exchange.ts'
import type { JsonObject } from '../common.ts'
import type { Interaction } from '../interactions/schema.ts'
import type { RunCommands } from '../internal.ts'
import type { Attached, FileFacts } from './attachments.ts'
import type { TurnWork } from './bookkeeping.ts'
import type { SessionSeed } from './rows.ts'
import type { CompactionProgress, Session } from './schema.ts'
import type { Block, ToolResultBlock } from './turns/blocks.ts'
import type { Defined, TurnDefinition, Unfit } from './turns/definition.ts'

/**
 * Unless stated otherwise, these commands are total: a late, repeated or unrelated command changes
 * nothing.
 */
export type SessionCommands = {
  'job.settled': RunCommands['job.settled']
  'job.retried': RunCommands['job.retried']
  /**
   * Sent by an interaction that this session opened, after each of its changes, in the same commit.
   */
  'interaction.changed': {
    /** `invalid`: the interaction was cancelled because its targets do not exist. */
    input: { interaction: Interaction; invalid?: true }
    reply: undefined
  }
  /**
   * Sent by a run or a channel to open its own turn, under separate admission rules. A run receives
   * the end of the turn as `turn.settled`, also when the turn cannot start.
   */
  'turn.open': { input: TurnOpening; reply: undefined }
  /**
   * Sent by the run that owns the turn to cancel it. Commands of a run arrive in order, so
   * `turn.open` came first.
   */
  'turn.stop': { input: { turn_id: string }; reply: undefined }
  /**
   * Sent by the executor when it has looked up what an exchange needs: starts the turn, and creates
   * the session if there is none. Not total: a session that has just ended refuses the command.
   */
  'exchange.open': { input: ExchangeOpening; reply: { readonly session_id: string } }
  /** Sent by the newest session of a key to the key's first session. */
  'session.succeed': { input: { generation: number }; reply: undefined }
  /**
   * Sent by the gateway before it stores bytes. The reply to a repeated upload contains the stored
   * file.
   */
  'attachment.reserve': { input: Reserving; reply: { artifact_id: string; attached?: Attached } }
  wake: { input: unknown; reply: undefined }
}
/** `key`: the caller's id and idempotency key; `hash`: a digest of bytes, name and type hint. */
interface Reserving {
  readonly file: FileFacts
  readonly hash: string
  readonly key?: string
}
/**
 * The reply to appended messages. `compacting`: the append started a compaction pass; the gateway
 * waits for its end.
 */
export type Appended = Session & { readonly compacting?: true }
/** Added by the gateway to an upload whose bytes are stored. */
export interface Attaching {
  readonly artifact_id: string
}
export interface TurnOpening {
  readonly turn_id: string
  /** Identifies the session, so that it can be created with `seed`; absent: the session exists. */
  readonly place?: Place
  readonly seed?: Pick<SessionSeed, 'title' | 'visibility' | 'compaction_policy'>
  readonly owner:
    | { readonly run_id: string; readonly step_key: string }
    | { readonly channel_exchange_id: string }
  /** The loop that started the run. */
  readonly loop_id?: string
  readonly attempt: number
  readonly content: readonly Block[]
  readonly definition: TurnDefinition
  readonly asker: TurnWork['asker']
  readonly output_schema?: JsonObject
  readonly metadata?: JsonObject
}
/** The end of a run's turn, as reported to the run. */
export interface TurnReport {
  readonly run_id: string
  readonly turn_id: string
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** `output` satisfies the schema; without an output, `text` is the agent's last text. */
  readonly output?: JsonObject
  readonly text?: string
  readonly error_type?: string
  readonly error?: string
  /** Set when the same call was repeated too often. */
  readonly stalled?: {
    readonly tool: string
    readonly duplicate_calls: number
    readonly limit: number
  }
  /** The session ended before the turn could start; a new lookup finds its successor. */
  readonly again?: true
}
/** The tokens and credits that one generation of a turn spent. */
export interface TurnSpending {
  /** The run that owns the turn and receives the report. */
  readonly run_id?: string
  /** The job id, so that a repeated report is recognised. */
  readonly usage_id: string
  readonly step_key: string
  readonly tokens: number
  /** Thousandths of a credit. */
  readonly milli: number
  /** Absent in journals of earlier releases. */
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
  /** The answer ended the turn; the report of that end follows. */
  readonly ends?: boolean
}

/**
 * Location of the session that a request refers to. `generation`: the number of earlier sessions
 * with the same key.
 */
export interface Place {
  readonly root: string
  readonly generation: number
  readonly session_key: string
  readonly agent_id: string
  readonly agent_name: string
  /** Default compaction policy of new sessions. */
  readonly compaction_policy?: CompactionPolicy
  /** The loop or workflow whose namespace contains the key; absent: the agent's own namespace. */
  readonly scope_ref_id?: string
  /** A run creates the session. */
  readonly of_run?: true
}
/** Added by the gateway to an invocation and to the creation of a session. */
export interface Placing {
  readonly place: Place
}
/** Added by the gateway to requests that may start a turn. */
export type { Defined }
/**
 * For nudges and requests with an idempotency key: the definition, or the reason why no turn can
 * start.
 */
export type Keyed = Defined | Unfit
/** SHA-256 of a nudge's content, in hexadecimal. */
export interface Hashed {
  readonly content_hash: string
}

/**
 * Reply to the read `standing`: whether the session is live, and what the gateway needs before it
 * sends a turn.
 */
export interface Standing {
  readonly exists: boolean
  /** The session was deleted, or was idle for longer than its retention. */
  readonly gone: boolean
  /** Generation of the newest session of the key, as far as the key's first session knows. */
  readonly generation: number
  readonly session?: Session
}
/**
 * An item of the reply to the read `results`: the result of a call whose row is not committed yet.
 */
export interface KnownResult {
  readonly turn_id: string
  readonly tool_name: string
  readonly result: ToolResultBlock
}
/** Reply to the read `detail`. */
export interface Compacting {
  readonly compaction: CompactionProgress
}
