/**
 * The state of a session between two commands: its record and files, the rows that the model is
 * shown, unfinished turns, pending nudges, and the newest idempotency keys. `evolve` builds it from
 * events alone.
 *
 * Invariants:
 * S1. `window` contains the last summary, if any, and the final rows that it does not cover, within
 *     the bounds of history/window.ts. Views store the older rows.
 * S2. Only unfinished turns and pending nudges are stored in full. Of the idempotency keys
 *     (`limits.keys`, `limits.nudge_keys`) and the ids of tool uses, only the newest are stored.
 *     The state therefore does not grow with the conversation.
 * S3. An `evolve` handler never mutates the state that it receives, because a decision applies
 *     events to the state before they are committed.
 */
import { parseTimestamp, timestamp } from '../../protocol/common.ts'
import type { SessionFile } from '../../protocol/sessions/attachments.ts'
import type { NudgeWork, TurnWork } from '../../protocol/sessions/bookkeeping.ts'
import type { Pass } from '../../protocol/sessions/events.ts'
import { limits } from '../../protocol/sessions/limits.ts'
import type {
  CompactionProgress,
  Session,
  SessionDetail,
  SessionNudge,
  TurnExtra,
  TurnUpsert,
} from '../../protocol/sessions/schema.ts'
import type { TurnDefinition } from '../../protocol/sessions/turns/definition.ts'
import type { Remembered } from './history/remembered.ts'
import type { Window } from './history/window.ts'

/** A turn that has not ended. */
export interface Turn {
  readonly record: TurnUpsert
  readonly extra: TurnExtra
  readonly work: TurnWork
}
interface KeyedTurn {
  readonly turn_id: string
  readonly boundary: number
  readonly after_sequence: number
}
/** A nudge that has not been delivered yet. */
interface PendingNudge {
  readonly nudge: SessionNudge
  readonly kept: NudgeWork
}
/** The data used to answer a repeat of a nudge. */
export interface KeyedNudge
  extends Pick<NudgeWork, 'turn_id' | 'delivery' | 'after_sequence' | 'woke'> {
  readonly nudge_id: string
  readonly content_hash: string
}
/** A compaction in progress; `at` and `deadline` are Unix milliseconds. */
interface Compacting {
  readonly job_id: string
  readonly at: number
  readonly deadline: number
  readonly pass: Pass
  readonly definition: TurnDefinition
}
export interface SessionState extends Window {
  /** Absent before the session is created. */
  readonly record?: Session
  /** Set if the request that created the session specified its visibility. */
  readonly visibility_requested?: true
  /** Id of the first session with the same key. */
  readonly root: string
  /** Number of earlier sessions with the same key. */
  readonly generation: number
  /**
   * In the first session of a key: the generation of the key's newest session, as that session
   * reported it. In other sessions: their own generation.
   */
  readonly newest: number
  readonly gone: boolean
  readonly sequence: number
  readonly revision: number
  /** Number of turns so far. */
  readonly turn_count: number
  readonly latest?: SessionDetail['latest_compaction']
  readonly turns: Readonly<Record<string, Turn>>
  readonly keys: Remembered<KeyedTurn>
  readonly nudges: Readonly<Record<string, PendingNudge>>
  readonly nudge_keys: Remembered<KeyedNudge>
  readonly compacting?: Compacting
  /** The definition of the most recently admitted turn. */
  readonly definition?: TurnDefinition
  /** Ids of tool uses; see turns/calls.ts. */
  readonly calls?: Remembered<true>
  /** The last value of each application context, by name. */
  readonly contexts: Readonly<Record<string, string>>
  readonly attachments?: Readonly<Record<string, SessionFile>>
  /**
   * Number of tokens of the last generation, including cached tokens, as a measure of how full the
   * model's context window is; 0 after a compaction.
   */
  readonly tokens: number
}
export const initialSession = (): SessionState => ({
  root: '',
  generation: 0,
  newest: 0,
  gone: false,
  sequence: 0,
  revision: 0,
  turn_count: 0,
  window: [],
  size: 0,
  turns: {},
  keys: [],
  nudges: {},
  nudge_keys: [],
  contexts: {},
  tokens: 0,
})

/**
 * A session that exists, and that had neither been deleted nor expired at the time of the decision.
 */
export type Live = SessionState & { readonly record: Session }
/**
 * Returns the time at which the session expires because it was idle, in Unix milliseconds. Returns
 * undefined if its retention is not bounded, if it has no messages or an unfinished turn, or if it
 * was deleted or has expired.
 */
export function expiry({ record, gone, turns }: SessionState): number | undefined {
  const ttl = record?.retention?.mode === 'bounded' ? record.retention.ttl_seconds : undefined
  if (
    !record ||
    gone ||
    ttl === undefined ||
    !record.last_message_at ||
    Object.keys(turns).length > 0
  )
    return undefined
  const last = parseTimestamp(record.last_message_at)
  return last === undefined ? undefined : last + ttl * 1000
}
/**
 * Whether the session can be used: created, not deleted, and not idle beyond its retention.
 * @param at Unix milliseconds.
 */
export const isLive = (state: SessionState, at: number): state is Live =>
  state.record !== undefined && !state.gone && (expiry(state) ?? Infinity) > at

/** Returns the turns in the order in which they were admitted. */
export const turnsOf = ({ turns }: SessionState): Turn[] =>
  Object.values(turns).sort((a, b) => (a.record.seq ?? 0) - (b.record.seq ?? 0))
/**
 * Returns the running turn, or undefined if no turn is running. At most one turn of a session runs
 * at a time.
 */
export const runningTurn = (state: SessionState): Turn | undefined =>
  turnsOf(state).find(({ record }) => record.status === 'running')
/** Returns the direct turn that has not ended, or undefined if all direct turns have ended. */
export const directTurn = (state: SessionState): Turn | undefined =>
  turnsOf(state).find(({ work }) => work.owner === 'direct')
/**
 * Whether the session accepts no more turns and nudges. Pending nudges count as turns: when a turn
 * ends without being cancelled, all of its undelivered nudges become turns in the same commit.
 */
export const isFull = ({ turns, nudges }: Pick<SessionState, 'turns' | 'nudges'>): boolean =>
  Object.keys(turns).length + Object.keys(nudges).length >= limits.turns
/** Returns the pending nudges of a turn, oldest first. */
export const pendingNudges = ({ nudges }: SessionState, turn_id: string): PendingNudge[] =>
  Object.values(nudges).filter(({ kept }) => kept.turn_id === turn_id)

/**
 * Returns the progress of the compaction.
 * @param at Unix milliseconds.
 */
export function progressOf({ compacting }: SessionState, at: number): CompactionProgress {
  if (!compacting || compacting.deadline <= at) return { in_progress: false }
  const { from_sequence, through_sequence, message_count } = compacting.pass
  return {
    in_progress: true,
    started_at: timestamp(compacting.at),
    deadline: timestamp(compacting.deadline),
    from_sequence,
    through_sequence,
    message_count,
  }
}
