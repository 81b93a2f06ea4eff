/**
 * Admission of a turn: the events and rows with which a new turn enters the session. The callers
 * check the limits of the session first, and `startNextTurn` (turns.ts) starts the turn.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import type { TurnWork } from '../../../protocol/sessions/bookkeeping.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import type { Block } from '../../../protocol/sessions/turns/blocks.ts'
import type { AppContext } from '../../../protocol/sessions/turns/context.ts'
import { change, type Draft, emit, now, write } from '../draft.ts'
import { writeContext } from '../history/context.ts'
import type { Turn } from '../state.ts'

/** The principal that requests a turn, with the turn's definition and metadata. */
export interface TurnRequest {
  readonly asker: TurnWork['asker']
  readonly definition: TurnWork['definition']
  readonly metadata: JsonObject | undefined
}
interface Admission extends TurnRequest {
  readonly owner: TurnWork['owner']
  readonly loop_id?: string
  /** Absent if the content of the message was dropped. The turn then has no input. */
  readonly content: readonly Block[] | undefined
  readonly key?: string | undefined
  readonly context?: readonly AppContext[]
  readonly output_schema?: JsonObject | undefined
  readonly of?: Partial<
    Pick<Turn['record'], 'run_id' | 'step_key' | 'channel_exchange_id' | 'attempt'>
  >
  readonly turn_id?: string
  readonly exchange?: TurnWork['exchange']
  readonly depth?: number
  readonly causation?: TurnWork['causation'] | undefined
}
interface Admitted {
  readonly turn_id: string
  readonly user_message: TranscriptMessage | undefined
  readonly boundary: number
  readonly after_sequence: number
}

/**
 * Admits a new turn: writes the changed context and the input, and queues the turn. An archived
 * session becomes active.
 */
export function admitTurn(
  draft: Draft,
  {
    owner,
    content,
    key,
    context = [],
    output_schema,
    of,
    metadata,
    turn_id = draft.cause.mint('turn'),
    exchange,
    depth,
    causation,
    ...asking
  }: Admission,
): Admitted {
  const { record, revision: boundary, sequence: before } = draft.state
  if (record.status === 'archived') change(draft, { status: 'active' })
  writeContext(draft, turn_id, context)
  const after_sequence = draft.state.sequence + (content ? 1 : 0)
  const work: TurnWork = extended(asking, {
    owner,
    boundary,
    before,
    after_sequence,
    generations: 0,
    next_index: 1,
    spent: 0,
    repeats: {},
    usage: {},
    ...(output_schema && { output_schema }),
    ...(exchange && { exchange }),
    ...(depth !== undefined && { depth }),
    ...(causation && { causation }),
  })
  emit(draft, { type: 'turn.admitted', id: turn_id, work, ...(key !== undefined && { key }) })
  emit(draft, {
    type: 'turn.extra',
    id: turn_id,
    extra: { effective_timeout_seconds: asking.definition.timeout_seconds },
  })
  const user_message =
    content && write(draft, { turn: { id: turn_id, index: 0 }, role: 'user', content, metadata })
  emit(draft, {
    type: 'turn.upsert',
    id: turn_id,
    agent_id: record.agent_id,
    session_id: record.id,
    attempt: 1,
    ...of,
    status: 'queued',
    phase: 'queued',
    seq: draft.state.turn_count,
    created_at: now(draft),
    updated_at: now(draft),
  })
  return { turn_id, user_message, boundary, after_sequence }
}
