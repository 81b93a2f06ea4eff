/**
 * The life of turns in a session.
 *
 *     queued → running ⇄ waiting → completed | failed | cancelled
 *
 * Invariants:
 * L1. At most one turn runs; the oldest that is queued goes first. A turn that waits for people lets others run.
 * L2. A turn ends once, and takes with it what it had under way: its jobs are stopped, its questions withdrawn before it
 *     ends, its nudges cancelled or made turns of their own, its open row taken away. So no committed tool use is without a result.
 * L3. Only time spent running counts against the budget.
 */
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { TurnUpsert } from '../../../protocol/sessions/schema.ts'
import type { Ending, TurnWork } from '../../../protocol/sessions/bookkeeping.ts'
import type { Patch } from '../../../protocol/patch.ts'
import {
  emit,
  note,
  now,
  tellInteraction,
  tellQueue,
  turnOf,
  upsert,
  type Draft,
} from '../draft.ts'
import { report } from './report.ts'
import { beginCompaction } from '../history/compaction.ts'
import { reportExchange } from './exchange.ts'
import { deliverNudges, dropNudges, promoteNudges } from './nudges.ts'
import { generate } from './generate.ts'
import { advanceSegment } from './segment.ts'
import { queueOf } from './jobs.ts'
import { runningTurn, turnsOf, type Turn } from '../state.ts'

/** Have the next turn run when none does; when nothing is left to run, the session may compact. */
export function pump(on: Draft): void {
  for (;;) {
    if (runningTurn(on.state)) return
    const next = turnsOf(on.state).find(
      ({ record, work }) => record.status === 'queued' && !work.ending,
    )
    if (!next) break
    const { id } = next.record
    upsert(on, id, { status: 'running', wait: null })
    note(on, id, { since: on.cause.at })
    goOn(on, id)
  }
  if (Object.keys(on.state.turns).length === 0) beginCompaction(on, 'auto')
}

/** A turn that runs takes its next step: its open calls, or, at the boundary between two iterations, its nudges and the next generation. */
export function goOn(on: Draft, id: string): void {
  const turn = turnOf(on, id)
  if (turn?.record.status !== 'running' || turn.work.ending) return
  if (turn.work.segment && Object.keys(turn.work.segment.calls).length > 0) advanceSegment(on, id)
  else if (!turn.work.generation) {
    deliverNudges(on, id)
    generate(on, id)
  }
}

/** Milliseconds for which a turn has been running. */
const spentOf = ({ work: { since, spent } }: Turn, at: number): number =>
  spent + (since === undefined ? 0 : at - since)
/** When the budget of a turn that runs is used up, in Unix milliseconds. */
export const budgetEnds = ({ record, work }: Turn): number =>
  record.status === 'running' && work.since !== undefined && !work.ending
    ? work.since + work.definition.timeout_seconds * 1000 - work.spent
    : Infinity

/** The turn waits for people and lets others run. */
export function wait(on: Draft, id: string, waiting: NonNullable<TurnUpsert['wait']>): void {
  const turn = turnOf(on, id)
  if (!turn) return
  note(on, id, { since: null, spent: spentOf(turn, on.cause.at) })
  upsert(on, id, { status: 'waiting', wait: waiting })
  pump(on)
}
/** The turn waits no more: it takes its turn again. */
export function requeue(on: Draft, id: string): void {
  upsert(on, id, { status: 'queued', wait: null })
}

/** End a turn. With questions open, it ends when the last of them has been withdrawn, which happens in the same commit. */
export function end(on: Draft, id: string, ending: Ending): void {
  const turn = turnOf(on, id)
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
    tellQueue(on, job.queue, 'queue.cancel', { job_ids: [job.id], reason: reasonOf(ending) })
  const open = openQuestions(turn)
  note(on, id, { ending, generation: null })
  if (open.length === 0) conclude(on, id)
  else
    for (const interaction_id of open)
      tellInteraction(on, interaction_id, 'interaction.withdraw', { reason: reasonOf(ending) })
}
const reasonOf = ({ status, error_type }: Ending): string =>
  status === 'failed' ? `the turn failed: ${error_type ?? 'error'}` : `the turn was ${status}`
/** Questions of a turn that nobody has settled. */
export const openQuestions = ({ work }: Turn): string[] =>
  Object.values(work.segment?.calls ?? {}).flatMap(({ state, interaction_id }) =>
    (state === 'asking' || state === 'waiting') && interaction_id !== undefined
      ? [interaction_id]
      : [],
  )

/** Nothing of the turn is open any more: it ends now. */
export function conclude(on: Draft, id: string): void {
  const turn = turnOf(on, id)
  const ending = turn?.work.ending
  if (!turn || !ending || settledTurns.has(turn.record.status)) return
  const { status, error_type, error_message, budget } = ending
  if (status === 'cancelled') dropNudges(on, id)
  if (budget) emit(on, { type: 'turn.extra', id, extra: { error_scope: 'agent_turn' } })
  report(on, turn, ending)
  reportExchange(on, turn)
  upsert(on, id, {
    status,
    wait: null,
    completed_at: now(on),
    ...(error_type !== undefined && { error_type }),
    ...(error_message !== undefined && { error_message }),
    ...(status === 'completed' && results(turn.work)),
  })
  if (status !== 'cancelled') promoteNudges(on, id)
  pump(on)
}
/** What a completed turn shows. */
function results({ usage, output, output_source }: TurnWork): Patch<TurnUpsert> {
  return {
    ...((usage.calls ?? 0) > 0 && { usage }),
    ...(output && { output, output_source: output_source ?? 'tool' }),
  }
}
/** End a turn for a fault. */
export const fail = (on: Draft, id: string, error_type: string, error_message: string): void =>
  end(on, id, { status: 'failed', error_type, error_message })
