/**
 * Stored events of a session. The frames are the transcript: `message.upsert`, `message.block`,
 * `message.block.patch`, `turn.upsert` and `interaction.upsert` contain exactly what a client
 * folds, so a snapshot is the fold of all frames (shapes: `schema.ts`, `turns/blocks.ts`). No other
 * event is part of the transcript.
 *
 * Invariants:
 * T1. The n-th frame of a session has the revision n, counted from 1. The actor, the view and the
 *     streams count in the same way. A boundary is the revision before the first frame of a turn.
 * T2. A `message.upsert` with status `streaming` and content `[]` opens a streaming row. The row
 *     ends with a `message.upsert` of the same id with status `final` and a sequence, or with the
 *     final `turn.upsert` of its turn, which removes the row.
 * T3. Sequences are 1, 2, 3… over final rows and context rows together.
 * T4. No frame of a turn follows its final `turn.upsert`. The frames of withdrawn interactions of
 *     the turn precede it.
 */
import type { ExchangeOutcome } from '../channels/exchange.ts'
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Interaction } from '../interactions/schema.ts'
import type { Patch } from '../patch.ts'
import type { AttachmentEvent } from './attachments.ts'
import type { SessionBookkeeping } from './bookkeeping.ts'
import type { Session, SessionNudge, TranscriptMessage, TurnExtra, TurnUpsert } from './schema.ts'
import type { Block, ResolvedAction } from './turns/blocks.ts'
import type { TurnDefinition } from './turns/definition.ts'

/** A stored frame of the transcript. `type` is the `event_type` of the frame. */
export type SessionFrame =
  | (Event & {
      readonly type: 'message.upsert'
      readonly said?: MessageSourceFacts
    } & TranscriptMessage)
  | (Event & {
      readonly type: 'message.block'
      readonly session_id: string
      readonly message_id: string
      readonly content_index: number
      readonly block: Block
    })
  | (Event & {
      readonly type: 'message.block.patch'
      readonly session_id: string
      readonly message_id: string
      readonly content_index: number
    } & BlockPatch)
  | (Event & { readonly type: 'turn.upsert' } & TurnUpsert)
  | (Event & { readonly type: 'interaction.upsert' } & Interaction)
/**
 * Data for the source event that reports a final message of a user or an agent. The transcript does
 * not contain this data. `depth`: the `depth` of the source event.
 */
export interface MessageSourceFacts {
  readonly session_key: string
  readonly depth: number
  /**
   * The message was sent in a private channel or a direct message, so the source event does not
   * contain its content.
   */
  readonly closed?: true
  /**
   * The message was sent in a private session, so only readers of the session receive the source
   * event.
   */
  readonly private_session?: true
}
/** Returns the row that a frame contains. */
export const rowIn = ({
  type: _,
  said: __,
  ...row
}: Extract<SessionFrame, { type: 'message.upsert' }>): TranscriptMessage => row
/**
 * A change to a block. If `progress` is absent, the progress of the block is unchanged. Null
 * removes it, and an object replaces it.
 */
export interface BlockPatch {
  readonly status?: string
  readonly progress?: JsonObject | null
  readonly resolved_action?: ResolvedAction
}

/** A compaction: its trigger, and the rows that it covers. */
export interface Pass {
  readonly trigger: 'auto' | 'manual' | 'append'
  readonly from_sequence: number
  readonly through_sequence: number
  readonly message_count: number
  readonly estimated_tokens: number
  readonly summary_model: string
  readonly threshold_tokens?: number
}

export type SessionEvent =
  | SessionFrame
  | (Event & {
      readonly type: 'session.created'
      readonly session: Session
      readonly root: string
      readonly generation: number
      /**
       * The request specified the visibility (see `visibility.ts`). Always absent in events of
       * earlier releases.
       */
      readonly visibility_requested?: true
    })
  | (Event & { readonly type: 'session.updated'; readonly session: Patch<Session> })
  /**
   * A newer session of the key exists. All sessions before it have ended; `generation` is their
   * number. Only the first session of a key stores this event.
   */
  | (Event & { readonly type: 'session.succeeded'; readonly generation: number })
  /** The transcript is deleted. The session remains as a tombstone, and its turns remain. */
  | (Event & { readonly type: 'session.expired'; readonly session: Patch<Session> })
  /**
   * A context row: a snapshot of application context, which has a sequence but is not part of the
   * transcript.
   */
  | (Event & { readonly type: 'context.stored'; readonly message: TranscriptMessage })
  /** Fields of the record of a turn that its frames do not contain. */
  | (Event & { readonly type: 'turn.extra'; readonly id: string; readonly extra: TurnExtra })
  | (Event & { readonly type: 'nudge.queued'; readonly nudge: SessionNudge })
  | (Event & {
      readonly type: 'nudge.changed'
      readonly id: string
      readonly nudge: Patch<SessionNudge>
    })
  | (Event & {
      readonly type: 'compaction.started'
      readonly at: number
      readonly deadline: number
      readonly job_id: string
      readonly pass: Pass
      readonly definition: TurnDefinition
    })
  /**
   * The compaction has succeeded. The event follows the `message.upsert` of the row with the
   * summary.
   */
  | (Event & {
      readonly type: 'compaction.created'
      readonly message_id: string
      readonly sequence: number
      readonly covers_through_sequence: number
      readonly pass: Pass
    })
  /**
   * The outcome of a turn of an exchange, which is sent to the channel. It precedes the last frame
   * of the turn.
   */
  | (Event & { readonly type: 'exchange.answered'; readonly channel_id: string } & ExchangeOutcome)
  | (Event & {
      readonly type: 'compaction.failed'
      readonly error_type: string
      readonly error_message: string
      readonly pass: Pass
    })
  | SessionBookkeeping
  | AttachmentEvent

const frameTypes: ReadonlySet<string> = new Set<SessionFrame['type']>([
  'message.upsert',
  'message.block',
  'message.block.patch',
  'turn.upsert',
  'interaction.upsert',
])
/** Whether a stored event is a frame of the transcript, and therefore has a revision. */
export const isFrame = (event: Event): event is SessionFrame => frameTypes.has(event.type)

/** Returns a block after a change. */
export function patchBlock(block: Block, { status, progress, resolved_action }: BlockPatch): Block {
  const { progress: before, ...rest } = block as Block & { progress?: JsonObject }
  const kept = progress === undefined ? before : (progress ?? undefined)
  return {
    ...rest,
    ...(status !== undefined && { status }),
    ...(resolved_action && { resolved_action }),
    ...(kept !== undefined && { progress: kept }),
  } as Block
}
