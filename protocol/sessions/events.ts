/**
 * What happens in a session, as it is stored. The frames ARE the transcript: `message.upsert`, `message.block`,
 * `message.block.patch`, `turn.upsert` and `interaction.upsert` carry exactly what a client's fold takes, so a snapshot is a
 * fold of them (shapes: shapes.ts). All other events are bookkeeping; no transcript shows them.
 *
 * Invariants:
 * T1. The n-th frame of a session has the REVISION n, counted from 1: actor, view and stream count alike. A boundary is the
 *     revision before the first frame of a turn.
 * T2. A row that streams is opened by a `message.upsert` with status `streaming` and content `[]`, and ended by one of the
 *     same id with status `final` and a sequence, or by the terminal `turn.upsert` of its turn, which takes it away.
 * T3. Sequences are 1, 2, 3… over final rows and context rows together.
 * T4. Nothing of a turn follows its terminal `turn.upsert`, but what its withdrawn questions have to say comes before.
 */
import type { ExchangeOutcome } from '../channels/exchange.ts'
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Interaction } from '../interactions/schema.ts'
import type { Patch } from '../patch.ts'
import type { AttachmentEvent } from './attachments.ts'
import type { Block, ResolvedAction } from './turns/blocks.ts'
import type { SessionBookkeeping } from './bookkeeping.ts'
import type { TurnDefinition } from './turns/definition.ts'
import type { Session, SessionNudge, TranscriptMessage, TurnUpsert, TurnExtra } from './schema.ts'

/** A frame of the transcript that is stored; `type` is the frame's `event_type`. */
export type SessionFrame =
  | (Event & { readonly type: 'message.upsert'; readonly said?: Said } & TranscriptMessage)
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
/** On final messages of people and agents, for the source event that tells of them; no transcript shows it. `depth`: of that event. */
export interface Said {
  readonly session_key: string
  readonly depth: number
  /** It was said in a private channel or a direct message: that it was, not what. */
  readonly closed?: true
  /** It was said in a private session: only its readers receive the source event. */
  readonly private_session?: true
}
/** The row that a frame carries. */
export const rowIn = ({
  type: _,
  said: __,
  ...row
}: Extract<SessionFrame, { type: 'message.upsert' }>): TranscriptMessage => row
/** `progress`: absent keeps, null removes, an object replaces. */
export interface BlockPatch {
  readonly status?: string
  readonly progress?: JsonObject | null
  readonly resolved_action?: ResolvedAction
}

/** What a compaction pass covers, and why it was begun. */
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
      /** The request named the visibility; see visibility.ts. Absent in journals of earlier releases. */
      readonly visibility_requested?: true
    })
  | (Event & { readonly type: 'session.updated'; readonly session: Patch<Session> })
  /** Told to the first session of a key: the sessions before this generation are gone. */
  | (Event & { readonly type: 'session.succeeded'; readonly generation: number })
  /** The transcript is pruned; the tombstone and the turns stay. */
  | (Event & { readonly type: 'session.expired'; readonly session: Patch<Session> })
  /** A row that no transcript shows: a snapshot of application context. It takes a sequence. */
  | (Event & { readonly type: 'context.stored'; readonly message: TranscriptMessage })
  /** What the record of a turn has besides what its frames carry. */
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
  /** Follows the `message.upsert` of the summary row. */
  | (Event & {
      readonly type: 'compaction.created'
      readonly message_id: string
      readonly sequence: number
      readonly covers_through_sequence: number
      readonly pass: Pass
    })
  /** The turn of a channel is over, just before its last frame: the channel is told. */
  | (Event & { readonly type: 'exchange.answered'; readonly channel_id: string } & ExchangeOutcome)
  | (Event & {
      readonly type: 'compaction.failed'
      readonly error_type: string
      readonly error_message: string
      readonly pass: Pass
    })
  | SessionBookkeeping
  | AttachmentEvent

/** The types of frames. */
const frameTypes: ReadonlySet<string> = new Set<SessionFrame['type']>([
  'message.upsert',
  'message.block',
  'message.block.patch',
  'turn.upsert',
  'interaction.upsert',
])
/** Whether a stored event is a frame of the transcript, and so has a revision. */
export const isFrame = (event: Event): event is SessionFrame => frameTypes.has(event.type)

/** Apply a patch to a block. */
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
