/**
 * Spending of a run. A usage is recorded when it is reported, even after the end of the run. Limits
 * are checked before the next step (../limits.ts), and immediately when an agent continues by
 * calling tools. An answer that ends its turn is already paid for, so its step is completed first.
 */

import type { RunCommands } from '../../../protocol/internal.ts'
import { creditsOf } from '../../../protocol/loops/credits.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Cause, Decision } from '../../actor.ts'
import { emit, emptyDecision, newDraft, tellLoop, withoutReply } from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { waitingAt } from '../engine/places.ts'
import { stopIfOverspent } from '../limits.ts'
import { hasEnded, type RunState } from '../state.ts'

/** Number of usages that are remembered to detect repeats. */
const REMEMBERED = 256

/** Adds a usage to the spending of the run. A repeat of a recent usage, by id, changes nothing. */
export function recordUsage(
  state: RunState | null,
  usage: RunCommands['usage.record']['input'],
  cause: Cause,
): Decision<RunEvent, undefined> {
  const {
    usage_id,
    category,
    quantity,
    credit_cost_milli: milli,
    budget_cost_milli: counted = milli,
    agent_turns = 0,
    step_key,
    agent_turn_id,
    provider,
    model,
    ends = false,
  } = usage
  if (!state || state.engine.usages?.includes(usage_id)) return emptyDecision
  const draft = newDraft(state, cause)
  const spent = Math.round((state.record.credit_spent ?? 0) * 1000) + counted
  const payload = {
    category,
    quantity,
    credit_cost: creditsOf(milli),
    budget_cost: creditsOf(counted),
    credit_spent: creditsOf(spent),
    ...(step_key !== undefined && { step_id: `${state.record.id}:${step_key}` }),
  }
  emit(draft, 'usage.recorded', {
    ...(step_key !== undefined && { step: step_key }),
    payload,
    usage: {
      usage_id,
      ...(agent_turn_id !== undefined && { agent_turn_id }),
      ...(provider !== undefined && { provider }),
      ...(model !== undefined && { model }),
    },
    run: {
      credit_spent: creditsOf(spent),
      ...(agent_turns > 0 && {
        agent_turns_used: (state.record.agent_turns_used ?? 0) + agent_turns,
      }),
    },
    note: { engine: { usages: [...(state.engine.usages ?? []), usage_id].slice(-REMEMBERED) } },
  })
  const continues = !ends && isAgentActive(state)
  if (counted > 0)
    tellLoop(draft, 'run.spent', {
      run_id: state.record.id,
      milli: counted,
      ...(continues && { continues }),
    })
  if (continues && stopIfOverspent(draft)) advance(draft)
  return withoutReply(draft)
}

/** Whether a limit may end the run now because its agent continues. */
const isAgentActive = (state: RunState): boolean =>
  !hasEnded(state) &&
  !state.record.cancel_requested &&
  !state.engine.ending &&
  waitingAt(state, ({ kind }) => kind === 'agent') !== undefined

/**
 * Records until when the daily budget of the loop is spent. Until then, this run does not start any
 * more steps. A time that is not in the future releases the run.
 */
export function halt(
  state: RunState | null,
  { used, limit, until, continues }: RunCommands['run.halt']['input'],
  cause: Cause,
): Decision<RunEvent, undefined> {
  if (!state || hasEnded(state)) return emptyDecision
  const isReleased = until !== undefined && until <= cause.at
  if (isReleased && !state.engine.spent_out) return emptyDecision
  const draft = newDraft(state, cause)
  const spent_out = isReleased ? null : { used, limit, ...(until !== undefined && { until }) }
  emit(draft, 'run.held', { note: { engine: { spent_out } } })
  if (continues && isAgentActive(state) && stopIfOverspent(draft)) advance(draft)
  return withoutReply(draft)
}
