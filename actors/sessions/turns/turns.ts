/**
 * The lifecycle of turns in a session. A queued or waiting turn can also be cancelled directly.
 *
 *     queued → running → completed | failed | cancelled
 *        ↑        ↓
 *        └──── waiting
 *
 * Invariants:
 * L1. At most one turn runs. Queued turns start oldest first. While a turn waits for people, other
 *     turns can run.
 * L2. A turn ends once, together with everything that it has in progress. Its questions are
 *     withdrawn before it ends, and its jobs are cancelled. Its nudges are cancelled or become new
 *     turns, and its open row is removed. Every tool use that a turn commits therefore has a
 *     result.
 * L3. Only the time for which a turn runs counts against its time budget.
 */

import type { Patch } from '../../../protocol/patch.ts'
import type { Ending, TurnWork } from '../../../protocol/sessions/bookkeeping.ts'
import type { TurnUpsert } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import {
  type Draft,
  emit,
  noteTurn,
  now,
  tellInteraction,
  tellQueue,
  turnOf,
  upsertTurn,
} from '../draft.ts'
import { beginCompaction } from '../history/compaction.ts'
import { runningTurn, type Turn, turnsOf } from '../state.ts'
import { openQuestions } from './call-results.ts'
import { generate } from './generate.ts'
import { queueOf } from './jobs.ts'
import type { TurnStep, Wait } from './next.ts'
import { deliverNudges, dropNudges, promoteNudges } from './nudges.ts'
import { reportExchange, reportTurn } from './report.ts'
import { advanceSegment } from './segment.ts'

/**
 * Starts the next queued turn if no turn is running. If all turns have ended, a compaction may
 * begin.
 */
export function startNextTurn(draft: Draft): void {
  for (;;) {
    if (runningTurn(draft.state)) return
    const next = turnsOf(draft.state).find(
      ({ record, work }) => record.status === 'queued' && !work.ending,
    )
    if (!next) break
    const { id } = next.record
    upsertTurn(draft, id, { status: 'running', wait: null })
    noteTurn(draft, id, { since: draft.cause.at })
    continueTurn(draft, id)
  }
  if (Object.keys(draft.state.turns).length === 0) beginCompaction(draft, 'auto')
}

/**
 * Advances a running turn by one step: continues its open calls or, between two iterations,
 * delivers its nudges and requests the next generation.
 */
export function continueTurn(draft: Draft, id: string): void {
  const turn = turnOf(draft, id)
  if (turn?.record.status !== 'running' || turn.work.ending) return
  if (turn.work.segment && Object.keys(turn.work.segment.calls).length > 0)
    applyStep(draft, id, advanceSegment(draft, id))
  else if (!turn.work.generation) {
    deliverNudges(draft, id)
    applyStep(draft, id, generate(draft, id))
  }
}
/** Advances, ends or suspends the turn, as the result of a generation or a segment requires. */
export function applyStep(draft: Draft, id: string, next: TurnStep): void {
  if (next === undefined) return
  if (next === 'advance') continueTurn(draft, id)
  else if ('end' in next) endTurn(draft, id, next.end)
  else wait(draft, id, next.wait)
}

/** Returns the total number of milliseconds for which a turn has been running. */
const spentOf = ({ work: { since, spent } }: Turn, at: number): number =>
  spent + (since === undefined ? 0 : at - since)
/**
 * Returns the time at which the time budget of a running turn is used up, in Unix milliseconds.
 * Returns Infinity for a turn that is not running or is ending.
 */
export const budgetDeadline = ({ record, work }: Turn): number =>
  record.status === 'running' && work.since !== undefined && !work.ending
    ? work.since + work.definition.timeout_seconds * 1000 - work.spent
    : Infinity

/** Suspends a turn that waits for people, so that other turns can run. */
function wait(draft: Draft, id: string, waiting: Wait): void {
  const turn = turnOf(draft, id)
  if (!turn) return
  noteTurn(draft, id, { since: null, spent: spentOf(turn, draft.cause.at) })
  upsertTurn(draft, id, { status: 'waiting', wait: waiting })
  startNextTurn(draft)
}
/** Queues a turn again after its wait has ended. */
export function requeueTurn(draft: Draft, id: string): void {
  upsertTurn(draft, id, { status: 'queued', wait: null })
}

/**
 * Ends a turn. A turn with open questions ends when the last of them has been withdrawn, in the
 * same commit.
 */
export function endTurn(draft: Draft, id: string, ending: Ending): void {
  const turn = turnOf(draft, id)
  if (!turn || turn.work.ending) return
  const { segment, generation } = turn.work
  const calls = Object.values(segment?.calls ?? {})
  const jobs = [
    ...(generation ? [{ queue: queueOf(turn.work.definition), id: generation.job_id }] : []),
    ...calls.flatMap(({ state, job_id, queue }) =>
      state === 'job' && job_id !== undefined
        ? [{ queue: queue ?? queueOf(turn.work.definition), id: job_id }]
        : [],
    ),
  ]
  for (const job of jobs)
    tellQueue(draft, job.queue, 'queue.cancel', { job_ids: [job.id], reason: reasonOf(ending) })
  const open = openQuestions(turn)
  noteTurn(draft, id, { ending, generation: null })
  if (open.length === 0) concludeTurn(draft, id)
  else
    for (const interaction_id of open)
      tellInteraction(draft, interaction_id, 'interaction.withdraw', { reason: reasonOf(ending) })
}
const reasonOf = ({ status, error_type }: Ending): string =>
  status === 'failed' ? `the turn failed: ${error_type ?? 'error'}` : `the turn was ${status}`
/** Completes the end of a turn that has no open questions. */
export function concludeTurn(draft: Draft, id: string): void {
  const turn = turnOf(draft, id)
  const ending = turn?.work.ending
  if (!turn || !ending || settledTurns.has(turn.record.status)) return
  const { status, error_type, error_message, budget } = ending
  if (status === 'cancelled') dropNudges(draft, id)
  if (budget) emit(draft, { type: 'turn.extra', id, extra: { error_scope: 'agent_turn' } })
  reportTurn(draft, turn, ending)
  reportExchange(draft, turn)
  upsertTurn(draft, id, {
    status,
    wait: null,
    completed_at: now(draft),
    ...(error_type !== undefined && { error_type }),
    ...(error_message !== undefined && { error_message }),
    ...(status === 'completed' && results(turn.work)),
  })
  if (status !== 'cancelled') promoteNudges(draft, id)
  startNextTurn(draft)
}
function results({ usage, output, output_source }: TurnWork): Patch<TurnUpsert> {
  return {
    ...((usage.calls ?? 0) > 0 && { usage }),
    ...(output && { output, output_source: output_source ?? 'tool' }),
  }
}
/** Ends a turn with an error. */
export const failTurn = (
  draft: Draft,
  id: string,
  error_type: string,
  error_message: string,
): void => endTurn(draft, id, { status: 'failed', error_type, error_message })
