/**
 * Sends and cancels nudges (`../turns/nudges.ts`). A nudge that no turn in progress accepts becomes
 * a new turn immediately.
 */
import type { Api } from '../../../protocol/api.ts'
import { bodyKey } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { isRefusal, refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { NudgeWork } from '../../../protocol/sessions/bookkeeping.ts'
import type { Hashed, Keyed } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import {
  type NudgeAck,
  publicSession,
  type SessionNudge,
} from '../../../protocol/sessions/schema.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  type Draft,
  emit,
  liveSession,
  newDraft,
  now,
  recordOf,
  turnOf,
  withReply,
} from '../draft.ts'
import { recall } from '../history/remembered.ts'
import {
  isFull,
  type KeyedNudge,
  type Live,
  type SessionState,
  type Turn,
  turnsOf,
} from '../state.ts'
import type { TurnRequest } from '../turns/admit.ts'
import { admitNudge, repeatedFields } from '../turns/nudges.ts'
import { withdrawQuestions } from '../turns/questions.ts'
import { startNextTurn } from '../turns/turns.ts'

type Nudge = Input<Api['session.nudge']> & Keyed & Hashed

/**
 * Returns the newest turn that accepts nudges, that is, a running or waiting turn that is not
 * ending. Returns undefined if no turn accepts nudges.
 */
const absorbing = (state: SessionState): Turn | undefined =>
  turnsOf(state)
    .filter(
      ({ record, work }) =>
        (record.status === 'running' || record.status === 'waiting') && !work.ending,
    )
    .at(-1)

/**
 * Sends a nudge to the session. For a repeat, the gateway completes the reply with the current
 * turn.
 */
export const nudge =
  (brand: string) =>
  (state: SessionState, input: Nudge, cause: Cause): Decision<SessionEvent, NudgeAck> => {
    const session = liveSession(state, cause)
    if (!session) return refuse('not_found')
    const key = bodyKey(input)
    const known = key === undefined ? undefined : recall(session.nudge_keys, key)
    if (known)
      return known.content_hash === input.content_hash
        ? { events: [], reply: replayReply(session, known) }
        : refuse(
            'conflict',
            { field: 'idempotency_key', nudge_id: known.nudge_id },
            'This idempotency key was used for another nudge.',
          )
    const target = absorbing(session)
    // If the agent can no longer start turns, a turn in progress continues and still accepts
    // nudges.
    const definition =
      'unfit' in input ? (target?.work.definition ?? input.unfit) : input.definition
    if (isRefusal(definition)) return definition
    if (isFull(session))
      return refuse(
        'conflict',
        { limit: limits.turns },
        'The session has the maximum number of unfinished turns and waiting nudges.',
      )
    const draft = newDraft(session, cause, brand)
    const id = cause.mint('nudge')
    const asker = { id: cause.principal.id, type: cause.principal.type }
    const base = {
      id,
      content: input.content,
      sender_principal_id: cause.principal.id,
      created_at: now(draft),
    }
    const asking: TurnRequest = { asker, definition, metadata: input.metadata }
    if (!target) {
      const { turn_id, after_sequence } = admitNudge(draft, id, input.content, asking)
      const kept: NudgeWork = {
        turn_id,
        delivery: 'new_turn',
        after_sequence,
        woke: false,
        asker,
        definition,
      }
      queue(
        draft,
        {
          ...base,
          status: 'delivered',
          delivery: 'new_turn',
          turn: { id: turn_id, status: 'queued' },
          delivered_at: now(draft),
        },
        key,
        input.content_hash,
        kept,
      )
      const turn = recordOf(turnOf(draft, turn_id) as Turn)
      startNextTurn(draft)
      return withReply(draft, ({ record }) => ({
        nudge_id: id,
        status: 'delivered',
        delivery: 'new_turn',
        session: publicSession(record),
        turn,
        after_sequence,
        deduped: false,
        woke_turn: false,
      }))
    }
    const woke = input.wake === true && withdrawQuestions(draft, target.record.id)
    const kept: NudgeWork = {
      turn_id: target.record.id,
      delivery: 'current_turn',
      after_sequence: session.sequence,
      woke,
      asker,
      definition,
      ...(input.metadata && { metadata: input.metadata }),
    }
    queue(
      draft,
      {
        ...base,
        status: 'pending',
        delivery: 'current_turn',
        turn: { id: target.record.id, status: target.record.status },
      },
      key,
      input.content_hash,
      kept,
    )
    const turn = recordOf(target)
    return withReply(draft, ({ record }) => ({
      nudge_id: id,
      status: 'pending',
      delivery: 'current_turn',
      session: publicSession(record),
      turn,
      after_sequence: session.sequence,
      deduped: false,
      woke_turn: woke,
    }))
  }
/** Returns the reply to a repeat: the status and delivery of the first request. */
const replayReply = (
  { record, turns }: Live,
  { nudge_id, turn_id, delivery, after_sequence, woke }: KeyedNudge,
): NudgeAck => {
  const turn = turns[turn_id]
  return {
    nudge_id,
    status: delivery === 'current_turn' ? 'pending' : 'delivered',
    delivery,
    session: publicSession(record),
    turn: turn ? recordOf(turn) : ({ id: turn_id } as NudgeAck['turn']),
    after_sequence,
    deduped: true,
    woke_turn: woke,
  }
}
function queue(
  draft: Draft,
  nudge: SessionNudge,
  key: string | undefined,
  content_hash: string,
  kept: NudgeWork,
): void {
  emit(draft, { type: 'nudge.queued', nudge })
  emit(draft, {
    type: 'nudge.keyed',
    id: nudge.id,
    content_hash,
    kept,
    ...(key !== undefined && { key }),
  })
}

/** Cancels a nudge. For a nudge that is no longer pending, the gateway reads the record. */
export const cancelNudge =
  (brand: string) =>
  (
    state: SessionState,
    { nudge_id }: { readonly nudge_id: string },
    cause: Cause,
  ): Decision<SessionEvent, SessionNudge> => {
    const session = liveSession(state, cause)
    if (!session) return refuse('not_found')
    const known = getOwn(session.nudges, nudge_id)
    if (!known) return { events: [], reply: { id: nudge_id } as SessionNudge }
    const draft = newDraft(session, cause, brand)
    emit(draft, {
      type: 'nudge.changed',
      id: nudge_id,
      nudge: { ...repeatedFields(known.nudge), status: 'cancelled', cancelled_at: now(draft) },
    })
    return withReply(draft, () => ({
      ...known.nudge,
      status: 'cancelled',
      cancelled_at: now(draft),
    }))
  }
