/**
 * A decision under construction about a session. Each event is applied when it is emitted, so later
 * parts of the decision see the effects of earlier parts. The decision contains the resulting
 * state. Changes to the session's record are collected and stored as one event at the end, with the
 * next version.
 */

import { channelOfKey } from '../../protocol/channels/exchange.ts'
import { timestamp } from '../../protocol/common.ts'
import { MAX_CHAIN_DEPTH } from '../../protocol/events/sources.ts'
import type { InteractionCommands } from '../../protocol/internal.ts'
import { type Patch, patch } from '../../protocol/patch.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { Call, TurnWork } from '../../protocol/sessions/bookkeeping.ts'
import type {
  BlockPatch,
  MessageSourceFacts,
  SessionEvent,
} from '../../protocol/sessions/events.ts'
import {
  type AgentTurn,
  agentTurn,
  type Session,
  type TranscriptMessage,
  type TurnUpsert,
} from '../../protocol/sessions/schema.ts'
import type { Block } from '../../protocol/sessions/turns/blocks.ts'
import { isPrivate, withVisibility } from '../../protocol/sessions/visibility.ts'
import type { Cause, Decided, Tell } from '../actor.ts'
import { evolve } from './evolve.ts'
import { isLive, type Live, type SessionState, type Turn } from './state.ts'

export interface Draft {
  readonly cause: Cause
  /** Brand in lower case: the prefix of the names of the service's own tools. */
  readonly brand: string
  state: Live
  readonly events: SessionEvent[]
  readonly tells: Tell[]
  /** Collected changes to the session's record. */
  change: Patch<Session>
}

/**
 * Begins a decision. Snapshots from older releases can contain an outdated default visibility,
 * which `withVisibility` corrects.
 */
export const newDraft = (state: Live, cause: Cause, brand: string): Draft => ({
  cause,
  brand,
  state: state.record
    ? { ...state, record: withVisibility(state.record, state.visibility_requested) }
    : state,
  events: [],
  tells: [],
  change: {},
})

/** Adds an event to the decision and applies it. */
export function emit(draft: Draft, event: SessionEvent): void {
  draft.events.push(event)
  draft.state = (
    evolve[event.type] as (state: SessionState, event: SessionEvent, at: number) => SessionState
  )(draft.state, event, draft.cause.at) as Live
}
/** Returns the time of the decision as an RFC 3339 timestamp. */
export const now = ({ cause }: Draft): string => timestamp(cause.at)
/** Returns the turn with this id, or undefined if it has ended. */
export const turnOf = ({ state }: Draft, id: string): Turn | undefined => state.turns[id]
export const tell = (
  draft: Draft,
  kind: Tell['to']['kind'],
  id: string,
  name: string,
  input: unknown,
): void => void draft.tells.push({ to: { kind, id }, name, input })
/**
 * Sends a command to an interaction of this session in the same commit. The interaction is in the
 * same shard.
 */
export const tellInteraction = <N extends keyof InteractionCommands>(
  draft: Draft,
  id: string,
  name: N,
  input: InteractionCommands[N]['input'],
): void => tell(draft, 'interaction', id, name, input)
/** Sends a command to a queue in the session's own shard. */
export const tellQueue = (
  draft: Draft,
  queue: string,
  name: 'queue.enqueue' | 'queue.cancel',
  input: unknown,
): void => tell(draft, 'queue', `${draft.cause.shard}.${queue}`, name, input)

/** Adds to the collected changes to the session's record. */
export const change = (draft: Draft, session: Patch<Session>): void =>
  void (draft.change = extended(draft.change, session))
/** Adds to the totals in the session's record. */
export function count(
  draft: Draft,
  added: Partial<
    Record<
      | 'token_input_total'
      | 'token_output_total'
      | 'cache_read_input_total'
      | 'cache_creation_input_total'
      | 'message_count',
      number | undefined
    >
  >,
): void {
  const record = patch(draft.state.record, draft.change)
  change(
    draft,
    Object.fromEntries(
      Object.entries(added).map(([name, more]) => [
        name,
        (record[name as keyof typeof added] ?? 0) + (more ?? 0),
      ]),
    ),
  )
}

/** The properties from which a transcript row is created. */
export interface NewRow {
  readonly id?: string
  readonly turn?: { readonly id: string; readonly index: number | null }
  readonly role: TranscriptMessage['role']
  readonly content: readonly Block[]
  readonly metadata?: TranscriptMessage['metadata'] | undefined
  readonly covers?: number
  readonly created_at?: string
}
const rowOf = (
  draft: Draft,
  row: NewRow,
  status: TranscriptMessage['status'],
  sequence: number | null,
): TranscriptMessage => ({
  id: row.id ?? draft.cause.mint('session_message'),
  session_id: draft.state.record.id,
  agent_id: draft.state.record.agent_id,
  ...(row.turn && { turn_id: row.turn.id }),
  role: row.role,
  content: [...row.content],
  entry_type: row.covers === undefined ? 'message' : 'compaction',
  status,
  turn_index: row.turn?.index ?? null,
  sequence,
  ...(row.covers !== undefined && { covers_through_sequence: row.covers }),
  ...(row.metadata && { metadata: row.metadata }),
  created_at: row.created_at ?? now(draft),
})
/** Writes a final row with the next sequence number. */
export function write(draft: Draft, row: NewRow): TranscriptMessage {
  const message = rowOf(draft, row, 'final', draft.state.sequence + 1)
  emit(draft, { type: 'message.upsert', ...message, ...sourceFacts(draft, message) })
  count(draft, { message_count: 1 })
  change(draft, { last_message_at: now(draft) })
  postponeExpiry(draft)
  return message
}
/**
 * Depth of the source events about messages and questions of a turn that a run owns. It exceeds the
 * maximum, so these events start no runs, and runs cannot start each other endlessly. Source events
 * about changes by the turn's tools have the causation of the run instead.
 */
const DEEP = MAX_CHAIN_DEPTH + 1
/**
 * Returns the depth of the source events of a turn's messages and questions: the number of runs in
 * the causal chain that led to the turn, or `DEEP` for a turn that a run owns.
 */
export const depthOf = ({ work: { depth, owner } }: Turn): number =>
  depth ?? (owner === 'run' ? DEEP : 0)
/**
 * Returns the data for the source event of a row, or an empty object for a row that is not
 * published. Only rows with the role `user` or `assistant` are published.
 */
function sourceFacts(
  { state, change: changed }: Draft,
  { role, turn_id }: TranscriptMessage,
): { said?: MessageSourceFacts } {
  if (role !== 'user' && role !== 'assistant') return {}
  const turn = turn_id === undefined ? undefined : state.turns[turn_id]
  const session = patch(state.record, changed)
  const { session_key, visibility } = session
  const closed = visibility === 'private' && channelOfKey(session_key) !== undefined
  return {
    said: {
      session_key,
      depth: turn ? depthOf(turn) : 0,
      ...(closed && { closed }),
      ...(isPrivate(session) && { private_session: true }),
    },
  }
}
/** Writes a row that no transcript shows. */
export const writeHidden = (draft: Draft, row: NewRow): void =>
  emit(draft, {
    type: 'context.stored',
    message: rowOf(draft, row, 'final', draft.state.sequence + 1),
  })
/** Opens a streaming row, or resets it. */
export const streamRow = (draft: Draft, row: NewRow & { readonly id: string }): void =>
  emit(draft, { type: 'message.upsert', ...rowOf(draft, row, 'streaming', null) })
/** Lets a session with a bounded retention expire its full time after the present message. */
function postponeExpiry(draft: Draft): void {
  const { retention } = draft.state.record
  if (retention?.mode === 'bounded' && retention.ttl_seconds !== undefined)
    change(draft, { expires_at: timestamp(draft.cause.at + retention.ttl_seconds * 1000) })
}

/** Changes the record of a turn in the transcript. */
export function upsertTurn(draft: Draft, id: string, more: Patch<TurnUpsert>): void {
  const { record } = turnOf(draft, id) as Turn
  const status = more.status ?? record.status
  const phase = status === 'queued' || status === 'running' || status === 'waiting' ? status : null
  // `patch` would remove `phase` if it is null, which is a valid value, so `phase` is set
  // afterwards.
  emit(draft, {
    type: 'turn.upsert',
    ...patch(record, more),
    status,
    phase,
    updated_at: now(draft),
  })
}
/** Changes the bookkeeping of a turn, which no transcript shows. */
export const noteTurn = (draft: Draft, id: string, work: Patch<TurnWork>, tokens?: number): void =>
  emit(draft, { type: 'turn.noted', id, work, ...(tokens !== undefined && { tokens }) })
export const noteCall = (draft: Draft, turn_id: string, id: string, call: Patch<Call>): void =>
  emit(draft, { type: 'call.noted', turn_id, id, call })
/** Patches a block of the turn's open segment. Does nothing if no segment is open. */
export function patchCall(draft: Draft, turn_id: string, index: number, change: BlockPatch): void {
  const message_id = turnOf(draft, turn_id)?.work.segment?.message_id
  if (message_id !== undefined)
    emit(draft, {
      type: 'message.block.patch',
      session_id: draft.state.record.id,
      message_id,
      content_index: index,
      ...change,
    })
}

/**
 * Emits the collected changes to the session's record, with its next version. Emits nothing if
 * there are no changes and no turn has changed.
 */
function settleRecord(draft: Draft): void {
  if (
    Object.keys(draft.change).length === 0 &&
    !draft.events.some(({ type }) => type === 'turn.upsert')
  )
    return
  const bumped: Patch<Session> = extended(draft.change, {
    version: draft.state.record.version + 1,
    updated_at: now(draft),
  })
  draft.change = {}
  emit(draft, { type: 'session.updated', session: bumped })
}
/** Completes and returns the decision of a command that has no reply. */
export function withoutReply(draft: Draft): Decided<SessionEvent, undefined> {
  settleRecord(draft)
  return { events: draft.events, reply: undefined, tells: draft.tells, next: draft.state }
}
/**
 * Completes and returns the decision of a command that has a reply. The reply is computed from the
 * state after the command and its tells have been decided.
 */
export function withReply<R>(draft: Draft, reply: (state: Live) => R): Decided<SessionEvent, R> {
  settleRecord(draft)
  return {
    events: draft.events,
    reply: reply as (state: never) => R,
    tells: draft.tells,
    next: draft.state,
  }
}
/** The empty decision of a command without a reply. */
export const emptyDecision: Decided<SessionEvent, undefined> = { events: [], reply: undefined }
/** Returns the session if it is live, otherwise undefined. */
export const liveSession = (state: SessionState, cause: Cause): Live | undefined =>
  isLive(state, cause.at) ? state : undefined
/** Returns the API record of a turn that has not ended. */
export const recordOf = ({ record, extra }: Turn): AgentTurn => agentTurn(record, extra)
