/**
 * Commands that change a session outside of its turns: title, status, deletion, appended messages,
 * cancellation, compaction on request, and timers.
 */

import { policyOf } from '../../protocol/agents/schema.ts'
import type { Api } from '../../protocol/api.ts'
import { parseTimestamp, timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { ingest, isDropped } from '../../protocol/sessions/check.ts'
import type { Appended, Defined, Keyed } from '../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../protocol/sessions/events.ts'
import { type AgentTurn, publicSession, type Session } from '../../protocol/sessions/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import { abandonLateUploads, eraseAll } from './attachments.ts'
import {
  change,
  count,
  type Draft,
  emit,
  emptyDecision,
  liveSession,
  newDraft,
  tellQueue,
  withoutReply,
  withReply,
  write,
} from './draft.ts'
import { bindFiles, nextUploadDeadline } from './files.ts'
import { beginCompaction, expirePass } from './history/compaction.ts'
import { expiry, isLive, type Live, type SessionState, turnsOf } from './state.ts'
import { queueOf } from './turns/jobs.ts'
import { budgetDeadline, endTurn } from './turns/turns.ts'

type Decide<N extends keyof Api, R, E = unknown> = (
  state: SessionState,
  input: Input<Api[N]> & E,
  cause: Cause,
) => Decision<SessionEvent, R>
const record = ({ record: one }: Live): Session => publicSession(one)

/** Changes title, status, compaction policy and thinking effort. */
export const update =
  (brand: string): Decide<'session.update', Session> =>
  (state, input, cause) => {
    const session = liveSession(state, cause)
    if (!session)
      return state.record
        ? refuse('conflict', { status: 'deleted' }, 'The session was deleted.')
        : refuse('not_found')
    const { title, status, compaction_policy, thinking_effort } = input
    const draft = newDraft(session, cause, brand)
    const before = session.record
    if (status === 'deleted') {
      const refused = bury(draft)
      if (refused) return refused
    } else if (status !== undefined && status !== before.status) change(draft, { status })
    if (title !== undefined && title !== before.title) change(draft, { title })
    if (compaction_policy && Object.keys(compaction_policy).length > 0)
      change(draft, { compaction_policy: policyOf(before.compaction_policy, compaction_policy) })
    if (thinking_effort !== undefined && thinking_effort !== before.thinking_effort)
      change(draft, { thinking_effort: thinking_effort === 'inherit' ? null : thinking_effort })
    return withReply(draft, record)
  }
/** Marks the session as deleted, which frees its key. Refuses while a turn has not ended. */
function bury(draft: Draft): Refusal | undefined {
  const [active] = turnsOf(draft.state)
  if (active)
    return refuse(
      'conflict',
      { turn_id: active.record.id, status: active.record.status },
      'The session has a turn that has not ended; cancel it first.',
    )
  stopPass(draft)
  eraseAll(draft)
  change(draft, { status: 'deleted' })
  return undefined
}
function stopPass(draft: Draft): void {
  const { compacting } = draft.state
  if (!compacting) return
  tellQueue(draft, queueOf(compacting.definition), 'queue.cancel', {
    job_ids: [compacting.job_id],
    reason: 'the session was deleted',
  })
  emit(draft, {
    type: 'compaction.failed',
    error_type: 'storage_error',
    error_message: 'The session was deleted.',
    pass: compacting.pass,
  })
}
/** Deletes a session. Refuses while a turn has not ended. */
export const remove =
  (brand: string): Decide<'session.delete', undefined> =>
  (state, _, cause) => {
    const session = liveSession(state, cause)
    if (!session) return refuse('not_found')
    const draft = newDraft(session, cause, brand)
    return bury(draft) ?? withReply(draft, () => undefined)
  }

/** Appends messages without starting a turn. A compaction may begin. */
export const append =
  (brand: string): Decide<'session.append', Appended, Partial<Defined>> =>
  (state, input, cause) => {
    const session = liveSession(state, cause)
    if (!session) return refuse('not_found')
    const draft = newDraft(session, cause, brand)
    for (const [index, { role, content, metadata, created_at }] of input.messages.entries()) {
      if (isDropped(content)) continue
      const blocks = bindFiles(session, content, `messages[${index}].content`)
      if (isRefusal(blocks)) return blocks
      write(draft, {
        role,
        content: ingest(blocks),
        metadata,
        ...(created_at !== undefined && {
          created_at: timestamp(parseTimestamp(created_at) ?? cause.at),
        }),
      })
    }
    const {
      token_input_total,
      token_output_total,
      cache_read_input_total,
      cache_creation_input_total,
      model,
      model_provider,
    } = input
    count(draft, {
      token_input_total,
      token_output_total,
      cache_read_input_total,
      cache_creation_input_total,
    })
    if (model) change(draft, { model })
    if (model_provider) change(draft, { model_provider })
    const compacting = beginCompaction(draft, 'append', input.definition)
    return withReply(draft, (after) => ({ ...record(after), ...(compacting && { compacting }) }))
  }

/** Cancels the turns that have not ended. Turns of runs are cancelled only if `force` is set. */
export const cancel =
  (brand: string): Decide<'session.cancel', Session> =>
  (state, { force }, cause) => {
    const session = liveSession(state, cause)
    if (!session) return refuse('not_found')
    const draft = newDraft(session, cause, brand)
    // Turns are ended newest first, so that no queued turn starts only to be cancelled.
    const mine = turnsOf(session).filter(({ work }) => work.owner !== 'run' || force === true)
    for (const { record: turn, work } of [...mine].reverse())
      if (!work.ending) endTurn(draft, turn.id, { status: 'cancelled' })
    return withReply(draft, record)
  }
/** Cancels one turn. The reply contains only the turn's id. The gateway reads the record. */
export const cancelTurn =
  (brand: string): Decide<'session.cancel_turn', AgentTurn> =>
  (state, { turn_id }, cause) => {
    const reply = { id: turn_id } as AgentTurn
    if (!state.record) return refuse('not_found')
    const turn = getOwn(state.turns, turn_id)
    if (!turn || !isLive(state, cause.at)) return { events: [], reply }
    if (turn.work.owner === 'run')
      return refuse('turn_owned_by_run', { turn_id, run_id: turn.record.run_id })
    const draft = newDraft(state, cause, brand)
    endTurn(draft, turn_id, { status: 'cancelled' })
    return withReply(draft, () => reply)
  }

/**
 * Begins a compaction pass. Refuses while a pass is in progress. The gateway waits for the end of
 * the pass.
 */
export const compact =
  (brand: string): Decide<'session.compact', Session, Keyed> =>
  (state, input, cause) => {
    const session = liveSession(state, cause)
    if (!session) return refuse('not_found')
    if ('unfit' in input) return input.unfit
    const { definition } = input
    const draft = newDraft(session, cause, brand)
    expirePass(draft)
    if (draft.state.compacting)
      return refuse(
        'conflict',
        { trigger: draft.state.compacting.pass.trigger },
        'The session is being compacted.',
      )
    beginCompaction(draft, 'manual', definition)
    return withReply(draft, record)
  }

/**
 * Returns the next deadline in Unix milliseconds: the end of a turn's time budget, the deadline of
 * a compaction or of an unfinished upload, or the idle expiry. Returns undefined if there is no
 * deadline.
 */
export function deadline(state: SessionState): number | undefined {
  const first = Math.min(
    expiry(state) ?? Infinity,
    state.compacting?.deadline ?? Infinity,
    nextUploadDeadline(state),
    ...Object.values(state.turns).map(budgetDeadline),
  )
  return Number.isFinite(first) ? first : undefined
}
/** Handles everything that is due. An early or repeated wake is harmless. */
export const wake =
  (brand: string) =>
  (state: SessionState, _: unknown, cause: Cause): Decision<SessionEvent, undefined> => {
    if (!state.record || state.gone) return emptyDecision
    const draft = newDraft(state as Live, cause, brand)
    const due = expiry(state)
    if (due !== undefined && due <= cause.at) {
      stopPass(draft)
      eraseAll(draft)
      emit(draft, {
        type: 'session.expired',
        session: {
          status: 'deleted',
          message_count: 0,
          updated_at: timestamp(cause.at),
          version: state.record.version + 1,
        },
      })
      return { events: draft.events, reply: undefined, tells: draft.tells, next: draft.state }
    }
    expirePass(draft)
    abandonLateUploads(draft)
    for (const turn of turnsOf(state)) {
      if (budgetDeadline(turn) > cause.at) continue
      const { timeout_seconds } = turn.work.definition
      endTurn(draft, turn.record.id, {
        status: 'failed',
        error_type: 'timeout',
        error_message: `The turn reached its time limit of ${timeout_seconds} s.`,
        budget: true,
      })
    }
    return withoutReply(draft)
  }
