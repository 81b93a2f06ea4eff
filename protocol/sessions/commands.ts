/**
 * Internal commands of a session, fields that the gateway adds to requests from clients, and
 * replies to owner queries.
 */
import type { CompactionPolicy } from '../agents/schema.ts'
import type { ConversionResult } from '../artifacts/commands.ts'
import type { ExchangeOpening } from '../channels/exchange.ts'
import type { JsonObject } from '../common.ts'
import type { Causation } from '../events/sources.ts'
import type { Interaction } from '../interactions/schema.ts'
import type { RunCommands } from '../internal.ts'
import type { Attached, FileFacts } from './attachments.ts'
import type { TurnWork } from './bookkeeping.ts'
import type { SessionSeed } from './requests.ts'
import type { CompactionProgress, Session } from './schema.ts'
import type { Block, ToolResultBlock } from './turns/blocks.ts'
import type { Defined, TurnDefinition, UnresolvedDefinition } from './turns/definition.ts'

/**
 * Internal commands of a session. Unless stated otherwise, they are never refused: late and
 * repeated commands, and commands about an unknown turn or job, change nothing.
 */
export type SessionCommands = {
  'job.settled': RunCommands['job.settled']
  'job.retried': RunCommands['job.retried']
  /**
   * Reports a change to an interaction that this session opened. Sent by the interaction, in the
   * commit of the change.
   */
  'interaction.changed': {
    /** `invalid`: the interaction was cancelled because targets or reviewers do not exist. */
    input: { interaction: Interaction; invalid?: true }
    reply: undefined
  }
  /**
   * Opens a turn of a run, under admission rules that differ from those for client requests.
   * The run receives the end of the turn as `turn.settled`, even when the turn cannot start.
   */
  'turn.open': { input: TurnOpening; reply: undefined }
  /**
   * Cancels the turn. Sent by the run that owns it. The commands of a run arrive in order, so this
   * command never arrives before `turn.open`.
   */
  'turn.stop': { input: { turn_id: string }; reply: undefined }
  /**
   * Starts the turn of an exchange, and creates the session if it does not exist. Sent by the
   * executor that has looked up the data. Refused when the session has ended in the meantime, or
   * has too many unfinished turns and nudges.
   */
  'exchange.open': { input: ExchangeOpening; reply: { readonly session_id: string } }
  /**
   * Reports that a newer session of the session key exists. Sent by that session to the first
   * session of the key. `generation`: the number of earlier sessions with this key.
   */
  'session.succeed': { input: { generation: number }; reply: undefined }
  /**
   * Announces an upload. Sent by the gateway before it stores the bytes. Refused when the session
   * has ended or stores too many files, or when the idempotency key belongs to another upload or to
   * an erased file. The reply to a repeated upload contains the stored file. `expires_at`: the
   * deadline of the upload in Unix milliseconds. If it is present, the gateway then reserves the
   * bytes in the quota. It is absent for files of earlier releases, which do not count toward the
   * quota.
   */
  'attachment.reserve': {
    input: Reserving
    reply: { artifact_id: string; attached?: Attached; expires_at?: number }
  }
  /**
   * Abandons an upload after a failure, unless the file is already stored. Sent by the gateway.
   * `abandoned`: false if the file is stored, otherwise true.
   */
  'attachment.abandon': { input: Attaching; reply: { readonly abandoned: boolean } }
  /**
   * Reports that the conversion of an Office file has ended. Sent by its artifact, in the same
   * commit.
   */
  'attachment.converted': {
    input: Attaching & { readonly conversion: ConversionResult }
    reply: undefined
  }
  /**
   * Erases the file. Sent by its artifact, in the commit in which a client deleted the artifact.
   */
  'attachment.removed': { input: Attaching; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** `key`: id of the caller and idempotency key. `hash`: digest of bytes, name and type hint. */
interface Reserving {
  readonly file: FileFacts
  readonly hash: string
  readonly key?: string
  /**
   * Id of the organization, whose quota the file uses. Absent in commands from gateways of earlier
   * releases, whose uploads are not counted.
   */
  readonly organization?: string
}
/**
 * The reply to appended messages. `compacting`: the append has started a compaction, and the
 * gateway waits until the compaction has ended.
 */
export type Appended = Session & { readonly compacting?: true }
/** The data that the gateway adds to an upload whose bytes are stored. */
export interface Attaching {
  readonly artifact_id: string
}
export interface TurnOpening {
  readonly turn_id: string
  /**
   * The location of the session. If there is no such session, it is created from `seed`. Absent if
   * the session is known to exist.
   */
  readonly place?: SessionLocation
  readonly seed?: Pick<SessionSeed, 'title' | 'visibility' | 'compaction_policy'>
  readonly owner:
    | { readonly run_id: string; readonly step_key: string }
    | { readonly channel_exchange_id: string }
  /** Id of the loop that started the run. */
  readonly loop_id?: string
  readonly attempt: number
  readonly content: readonly Block[]
  readonly definition: TurnDefinition
  readonly asker: TurnWork['asker']
  readonly output_schema?: JsonObject
  readonly metadata?: JsonObject
  /**
   * The causation of source events that tool calls of the turn cause. Absent in the turn of a
   * channel, and in commands from earlier releases.
   */
  readonly causation?: Causation
}
/** The end of a turn of a run, as reported to the run. */
export interface TurnReport {
  readonly run_id: string
  readonly turn_id: string
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** The output, which satisfies the output schema. */
  readonly output?: JsonObject
  /** The last text of the agent, if there is no output. */
  readonly text?: string
  readonly error_type?: string
  readonly error?: string
  /** Present when the turn failed because the same call was repeated too often. */
  readonly stalled?: {
    readonly tool: string
    readonly duplicate_calls: number
    readonly limit: number
  }
  /** The session ended before the turn could start, so the run must look up the session again. */
  readonly again?: true
}
/** The tokens and credits that one generation of a turn consumed. */
export interface TurnSpending {
  /** Id of the run that owns the turn and receives the report. */
  readonly run_id?: string
  /** Id of the generation's job. A report with a known id is a repeat. */
  readonly usage_id: string
  readonly step_key: string
  readonly tokens: number
  /** The cost in thousandths of a credit. */
  readonly milli: number
  /** Absent in events of earlier releases. */
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
  /** The answer ended the turn, and the next command reports that end. */
  readonly ends?: boolean
}

/**
 * The location of the session that a request uses. `root`: the first session of the session key.
 * `generation`: the number of earlier sessions with this key.
 */
export interface SessionLocation {
  readonly root: string
  readonly generation: number
  readonly session_key: string
  readonly agent_id: string
  readonly agent_name: string
  /** Default compaction policy of new sessions. */
  readonly compaction_policy?: CompactionPolicy
  /**
   * Id of the loop, workflow or inline run whose namespace contains the key. Absent if the key is
   * in the namespace of the agent.
   */
  readonly scope_ref_id?: string
  /** A run creates the session. */
  readonly of_run?: true
}
/** The data that the gateway adds to an invocation and to the creation of a session. */
export interface SessionLocationInput {
  readonly place: SessionLocation
}
/** The data that the gateway adds to requests that may start a turn. */
export type { Defined }
/**
 * The data that the gateway adds to nudges, and to requests with an idempotency key: the
 * definition, or the reason why no turn can start.
 */
export type Keyed = Defined | UnresolvedDefinition
/** The data that the gateway adds to a nudge: the SHA-256 of its content, in hex. */
export interface Hashed {
  readonly content_hash: string
}

/**
 * The reply to the owner query `standing`: whether the session is live, and the data that the
 * gateway needs before it requests a turn.
 */
export interface Standing {
  readonly exists: boolean
  /** The session was deleted, or was idle for longer than its retention. */
  readonly gone: boolean
  /**
   * The number of sessions with the same session key before the newest one. Only the first session
   * of a key knows it, because newer sessions notify only that one.
   */
  readonly generation: number
  readonly session?: Session
}
/**
 * An item of the reply to the owner query `results`: the result of a call whose row has not been
 * committed yet.
 */
export interface KnownResult {
  readonly turn_id: string
  readonly tool_name: string
  readonly result: ToolResultBlock
}
/** The reply to the owner query `detail`. */
export interface Compacting {
  readonly compaction: CompactionProgress
}
