/**
 * How each event changes the state of a session. Events are not checked here. Frames, which clients
 * receive, increment the revision. Other events do not.
 */

import { patch } from '../../protocol/patch.ts'
import type { NudgeWork, Segment, TurnWork } from '../../protocol/sessions/bookkeeping.ts'
import {
  patchBlock,
  rowIn,
  type SessionEvent,
  type SessionFrame,
} from '../../protocol/sessions/events.ts'
import { limits } from '../../protocol/sessions/limits.ts'
import type { SessionNudge, TranscriptMessage } from '../../protocol/sessions/schema.ts'
import { settledTurns } from '../../protocol/sessions/settled.ts'
import { withVisibility } from '../../protocol/sessions/visibility.ts'
import type { Actor } from '../actor.ts'
import { evolveAttachments } from './files.ts'
import { remember } from './history/remembered.ts'
import { addRow, replaceWithSummary } from './history/window.ts'
import type { SessionState, Turn } from './state.ts'
import { callsOf, withCalls } from './turns/calls.ts'

type Arms = Actor<SessionState, SessionEvent, Record<never, never>, 'session'>['evolve']
type Of<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

const withTurn = (state: SessionState, id: string, change: (turn: Turn) => Turn): SessionState => {
  const turn = state.turns[id]
  return turn ? { ...state, turns: { ...state.turns, [id]: change(turn) } } : state
}
const withWork = (
  state: SessionState,
  id: string,
  change: (work: TurnWork) => TurnWork,
): SessionState => withTurn(state, id, (turn) => ({ ...turn, work: change(turn.work) }))
const without = <T>(record: Readonly<Record<string, T>>, id: string): Record<string, T> =>
  Object.fromEntries(Object.entries(record).filter(([key]) => key !== id))
/** Returns the newest entries of a record, at most `most`, in insertion order. */
const newest = <T>(
  record: Readonly<Record<string, T>>,
  most: number,
): Readonly<Record<string, T>> => {
  const keys = Object.keys(record)
  return keys.length <= most
    ? record
    : Object.fromEntries(keys.slice(keys.length - most).map((key) => [key, record[key] as T]))
}

/** Adds a final row to the window. A summary replaces the rows that it covers. */
function enter(before: SessionState, row: TranscriptMessage): SessionState {
  const state = { ...before, calls: withCalls(callsOf(before), [row]) }
  const sequence = row.sequence ?? state.sequence
  const covered = row.covers_through_sequence
  if (row.entry_type !== 'compaction' || covered === undefined)
    return { ...state, sequence, ...addRow(state, row) }
  return {
    ...state,
    sequence,
    ...replaceWithSummary(state, row, covered),
    latest: { message_id: row.id, sequence, covers_through_sequence: covered },
  }
}
function upsertRow(state: SessionState, frame: Of<'message.upsert'>): SessionState {
  const row = rowIn(frame)
  const { id, turn_id, turn_index, created_at } = row
  if (row.status === 'final') {
    const entered = enter(state, row)
    return turn_id === undefined ? entered : withWork(entered, turn_id, (work) => ended(work, id))
  }
  if (turn_id === undefined || turn_index === null) return state
  return withWork(state, turn_id, (work) => ({
    ...work,
    segment: { message_id: id, turn_index, created_at, content: row.content, calls: {} },
  }))
}
/** Removes the open segment from a turn's bookkeeping when the segment's row has become final. */
function ended(work: TurnWork, id: string): TurnWork {
  if (work.segment?.message_id !== id) return work
  const { segment: _, ...rest } = work
  return rest
}
function withSegment(
  state: SessionState,
  message_id: string,
  change: (segment: Segment) => Segment,
): SessionState {
  const turn = Object.values(state.turns).find(
    ({ work }) => work.segment?.message_id === message_id,
  )
  return turn
    ? withWork(state, turn.record.id, (work) =>
        work.segment ? { ...work, segment: change(work.segment) } : work,
      )
    : state
}
const framed =
  <T extends SessionFrame['type']>(arm: (state: SessionState, event: Of<T>) => SessionState) =>
  (state: SessionState, event: Of<T>): SessionState => ({
    ...arm(state, event),
    revision: state.revision + 1,
  })

function admitted(state: SessionState, { id, key, work }: Of<'turn.admitted'>): SessionState {
  const keys =
    key === undefined
      ? state.keys
      : remember(
          state.keys,
          key,
          { turn_id: id, boundary: work.boundary, after_sequence: work.after_sequence },
          limits.keys,
        )
  // The record of the turn is completed by the first `turn.upsert`, which follows in the same
  // commit.
  return {
    ...state,
    keys,
    definition: work.definition,
    turn_count: state.turn_count + 1,
    turns: { ...state.turns, [id]: { record: { id } as Turn['record'], extra: {}, work } },
  }
}
function keyNudge(
  state: SessionState,
  {
    id,
    key,
    content_hash,
    kept,
  }: { id: string; key?: string; content_hash: string; kept: NudgeWork },
): SessionState {
  const known = state.nudges[id]
  const { turn_id, delivery, after_sequence, woke } = kept
  const nudge_keys =
    key === undefined
      ? state.nudge_keys
      : remember(
          state.nudge_keys,
          key,
          { nudge_id: id, content_hash, turn_id, delivery, after_sequence, woke },
          limits.nudge_keys,
        )
  return {
    ...state,
    nudge_keys,
    nudges: known ? { ...state.nudges, [id]: { ...known, kept } } : state.nudges,
  }
}
/** Patches a nudge. A nudge that is no longer pending is removed from the state. */
function changeNudge(
  state: SessionState,
  id: string,
  change: Parameters<typeof patch<SessionNudge>>[1],
): SessionState {
  const known = state.nudges[id]
  if (!known) return state
  const nudge = patch(known.nudge, change)
  return {
    ...state,
    nudges:
      nudge.status === 'pending'
        ? { ...state.nudges, [id]: { ...known, nudge } }
        : without(state.nudges, id),
  }
}

/** Fields that are emptied when a session is deleted or expires. */
const EMPTY: Pick<
  SessionState,
  'window' | 'size' | 'keys' | 'nudges' | 'nudge_keys' | 'calls' | 'contexts' | 'attachments'
> = {
  window: [],
  size: 0,
  keys: [],
  nudges: {},
  nudge_keys: [],
  calls: [],
  contexts: {},
  attachments: {},
}

/** The `evolve` table of the session actor. */
export const evolve: Arms = {
  'session.created': (state, { session, root, generation, visibility_requested }) => ({
    ...state,
    record: withVisibility(session, visibility_requested),
    ...(visibility_requested && { visibility_requested }),
    root,
    generation,
    newest: Math.max(state.newest, generation),
  }),
  'session.updated': (state, { session }) => {
    if (!state.record) return state
    const record = patch(state.record, session)
    return record.status === 'deleted'
      ? { ...state, record, gone: true, ...EMPTY }
      : { ...state, record }
  },
  'session.succeeded': (state, { generation }) => ({
    ...state,
    newest: Math.max(state.newest, generation),
  }),
  'session.expired': (state, { session }) => ({
    ...state,
    gone: true,
    ...EMPTY,
    ...(state.record && { record: patch(state.record, session) }),
  }),
  'message.upsert': framed<'message.upsert'>(upsertRow),
  'message.block': framed<'message.block'>((state, { message_id, content_index, block }) =>
    withSegment(state, message_id, (segment) => {
      const content = [...segment.content]
      content[content_index] = block
      return { ...segment, content }
    }),
  ),
  'message.block.patch': framed<'message.block.patch'>(
    (state, { message_id, content_index, ...change }) =>
      withSegment(state, message_id, (segment) => ({
        ...segment,
        content: segment.content.map((block, index) =>
          index === content_index ? patchBlock(block, change) : block,
        ),
      })),
  ),
  'turn.upsert': framed<'turn.upsert'>((state, { type: _, ...record }) =>
    settledTurns.has(record.status)
      ? { ...state, turns: without(state.turns, record.id) }
      : withTurn(state, record.id, (turn) => ({ ...turn, record })),
  ),
  'interaction.upsert': framed<'interaction.upsert'>((state) => state),
  'context.stored': (state, { message }) => {
    const [block] = message.content
    const after = enter(state, message)
    return block?.type === 'reminder'
      ? {
          ...after,
          contexts: newest(
            { ...without(state.contexts, block.name), [block.name]: block.content },
            limits.context.names,
          ),
        }
      : after
  },
  'turn.admitted': admitted,
  'turn.noted': (state, { id, work, tokens }) => {
    const noted = withWork(state, id, (before) => patch(before, work))
    return tokens === undefined ? noted : { ...noted, tokens }
  },
  'exchange.answered': (state) => state,
  'turn.extra': (state, { id, extra }) =>
    withTurn(state, id, (turn) => ({ ...turn, extra: { ...turn.extra, ...extra } })),
  'call.noted': (state, { turn_id, id, call }) =>
    withWork(state, turn_id, (work) => {
      if (!work.segment) return work
      const known = work.segment.calls[id]
      return {
        ...work,
        segment: {
          ...work.segment,
          calls: {
            ...work.segment.calls,
            [id]: patch(known ?? { id, index: 0, state: 'ready' }, call),
          },
        },
      }
    }),
  'turn.reported': (state) => state,
  'turn.spent': (state) => state,
  'call.counted': (state, { id, signature }) =>
    withWork(state, id, (work) => ({
      ...work,
      repeats: { ...work.repeats, [signature]: (work.repeats[signature] ?? 0) + 1 },
    })),
  // The `nudge.keyed` event, which follows in the same commit, sets `kept`.
  'nudge.queued': (state, { nudge }) =>
    nudge.status === 'pending'
      ? { ...state, nudges: { ...state.nudges, [nudge.id]: { nudge, kept: {} as NudgeWork } } }
      : state,
  'nudge.keyed': keyNudge,
  'nudge.changed': (state, { id, nudge }) => changeNudge(state, id, nudge),
  'compaction.started': (state, { at, deadline, job_id, pass, definition }) => ({
    ...state,
    compacting: { job_id, at, deadline, pass, definition },
  }),
  'compaction.created': (state) => {
    const { compacting: _, ...rest } = state
    return { ...rest, tokens: 0 }
  },
  'compaction.failed': (state) => {
    const { compacting: _, ...rest } = state
    return rest
  },
  ...evolveAttachments,
}
