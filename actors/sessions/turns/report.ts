/**
 * Reports to the runs that own turns: the end of each turn, once and in the same commit, and the
 * usage of each model answer.
 */

import type { Address } from '../../../protocol/entry.ts'
import type { RunCommands } from '../../../protocol/internal.ts'
import type { Ending, SessionBookkeeping } from '../../../protocol/sessions/bookkeeping.ts'
import { textOf } from '../../../protocol/sessions/turns/blocks.ts'
import type { Effect } from '../../actor.ts'
import { type Draft, emit } from '../draft.ts'
import type { Turn } from '../state.ts'

type Of<T extends SessionBookkeeping['type']> = Extract<SessionBookkeeping, { type: T }>

/** Report the end of a turn to its run, if it has one. */
export function report(
  on: Draft,
  { record: { id: turn_id, run_id }, work: { output } }: Turn,
  { status, error_type, error_message, stalled }: Ending,
): void {
  if (run_id === undefined) return
  const said = on.state.window.findLast(
    (row) => row.turn_id === turn_id && row.role === 'assistant',
  )
  const gave =
    status !== 'completed' ? {} : output ? { output } : { text: said ? textOf(said.content) : '' }
  emit(on, {
    type: 'turn.reported',
    report: {
      run_id,
      turn_id,
      status,
      ...gave,
      ...(error_type !== undefined && { error_type }),
      ...(error_message !== undefined && { error: error_message }),
      ...(stalled && { stalled }),
    },
  })
}

const toRun = <N extends keyof RunCommands>(
  id: string,
  name: N,
  input: RunCommands[N]['input'],
): Effect[] => [{ tell: { to: { kind: 'run', id }, name, input } }]
/** Send a run the end of its turn. */
export const tellEnd = (
  { report: { run_id, ...rest } }: Of<'turn.reported'>,
  { id: session_id }: Address,
): Effect[] => toRun(run_id, 'turn.settled', { ...rest, session_id })
/** Send a run the usage of its turn. */
export const tellSpending = ({
  spending: { run_id, usage_id, step_key, tokens, milli, agent_turn_id, provider, model, ends },
}: Of<'turn.spent'>): Effect[] =>
  run_id === undefined
    ? []
    : toRun(run_id, 'usage.record', {
        usage_id,
        category: 'llm.tokens',
        quantity: tokens,
        credit_cost_milli: milli,
        step_key,
        ...(agent_turn_id !== undefined && { agent_turn_id }),
        ...(provider !== undefined && { provider }),
        ...(model !== undefined && { model }),
        ...(ends && { ends }),
      })
