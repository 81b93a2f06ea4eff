/**
 * Operator commands: cancel a run, resume it before its wait has ended, or retry it after it has
 * failed. A recovery continues the same run: the step that failed, or an earlier step, runs again,
 * and the steps before it keep their outputs.
 */

import type { GateExtra, RecoverExtra } from '../../../protocol/access/directory.ts'
import { actorOf } from '../../../protocol/actions/invocation.ts'
import type { Api } from '../../../protocol/api.ts'
import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { creditsOf, milliOf } from '../../../protocol/loops/credits.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Run } from '../../../protocol/runs/schema.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  current,
  type Draft,
  emit,
  newDraft,
  replyWithRecord,
  tellLoop,
  unchanged,
  withdraw,
} from '../draft.ts'
import { advance } from '../engine/advance.ts'
import { cancelRun } from '../engine/ending.ts'
import { attemptsOf, completeStep, withoutAttempt } from '../engine/outcome.ts'
import { holdsWork, prefixBelow } from '../engine/places.ts'
import { endWait, resumeStep } from '../engine/resume.ts'
import { stopWork } from '../engine/stop.ts'
import { type Engine, hasEnded, keyOf, type RunState } from '../state.ts'
import { overriddenVerdict, refuseGate } from '../steps/check.ts'
import { outputOf } from '../steps/interaction.ts'
import { applyDeclaredDefaults } from './start.ts'

type Reason = Pick<Input<Api['run.cancel']>, 'reason'>
type Recover = Omit<Input<Api['run.recover']>, 'project' | 'id'> & RecoverExtra & GateExtra
type Retry = Omit<Input<Api['run.retry']>, 'project' | 'id'> & RecoverExtra

/**
 * Requests cancellation. The jobs, child runs and turns of the run receive a stop request. The run
 * ends when all of them have ended. This may happen in the same commit, because a job that no
 * worker has claimed ends immediately. A run that is already in its cleanup continues it, and ends
 * with the outcome that was decided before the cleanup.
 */
export function cancel(
  state: RunState | null,
  { reason }: Reason,
  cause: Cause,
): Decision<RunEvent, Run> {
  if (!state) return refuse('not_found')
  if (hasEnded(state) || state.record.cancel_requested) return unchanged
  const draft = newDraft(state, cause)
  emit(draft, 'run.cancel_requested', {
    payload: { ...(reason !== undefined && { reason }) },
    run: { cancel_requested: true, cancel_requested_at: timestamp(cause.at) },
    ...(reason !== undefined && { note: { engine: { cancel_reason: reason } } }),
  })
  if (state.engine.ending) return replyWithRecord(draft)
  stopWork(draft)
  if (!holdsWork(draft.state)) {
    cancelRun(draft)
    advance(draft)
  }
  return replyWithRecord(draft)
}

/**
 * Resumes a suspended run now. A retry delay ends immediately. Waits for jobs, children, turns and
 * branches continue unchanged. A question ends as cancelled. The gate of a check is passed; for a
 * principal that could not answer the gate, the request is refused as an answer would be. Any other
 * wait ends with an empty output. For a run that is not suspended, the request is refused with
 * `run_not_suspended`.
 */
export function resume(
  state: RunState | null,
  { reason, responds }: Reason & GateExtra,
  cause: Cause,
): Decision<RunEvent, Run> {
  if (!state) return refuse('not_found')
  const { wait } = state.engine
  if (state.record.status !== 'suspended' || !wait)
    return refuse('run_not_suspended', { status: state.record.status })
  if (state.record.cancel_requested) return unchanged
  const refused = refuseGate(state, undefined, wait, responds, cause)
  if (refused) return refused
  const draft = newDraft(state, cause)
  draft.why = { reason: reason ?? 'resumption' }
  if (
    wait.kind === 'worker' ||
    wait.kind === 'run' ||
    wait.kind === 'branches' ||
    wait.kind === 'agent'
  ) {
    emit(draft, 'run.resumed', {
      step: wait.step,
      payload: { step: wait.step, ...draft.why },
      run: { status: 'running' },
    })
    emit(draft, 'run.suspended', {
      step: wait.step,
      payload: {
        step: wait.step,
        wait_id: wait.id,
        wait_kind: wait.kind,
        ...(wait.kind === 'worker' && { job_id: wait.job_id }),
      },
      run: { status: 'suspended' },
    })
    return replyWithRecord(draft)
  }
  const why = reason ?? 'the run was resumed without an answer'
  const verdict = overriddenVerdict(draft, why)
  const asked = wait.kind === 'interaction' && !verdict
  withdraw(draft, why)
  endWait(draft, 'wait.resumed', {
    reason: 'resumption',
    ...(verdict && { overridden_by: cause.principal.id }),
  })
  resumeStep(draft)
  if ('id' in wait)
    completeStep(
      draft,
      verdict ?? (asked ? outputOf({ status: 'cancelled', reason: why }) : {}),
      verdict && { verdict_detail: verdict },
    )
  advance(draft)
  return replyWithRecord(draft)
}

/**
 * Retries a failed run from the failed step or from an earlier step, with its input or a new input.
 * For any other run, the request is refused with `run_not_failed`.
 */
export const retry = (
  state: RunState | null,
  input: Retry,
  cause: Cause,
): Decision<RunEvent, Run> => recovery(state, input, cause, 'retry')
/** Resumes a suspended run as `resume` does, or a failed run at the step that failed. */
export const recover = (
  state: RunState | null,
  input: Recover,
  cause: Cause,
): Decision<RunEvent, Run> =>
  state?.record.status === 'suspended'
    ? resume(state, input, cause)
    : recovery(state, input, cause, 'resume')

function recovery(
  state: RunState | null,
  input: Retry,
  cause: Cause,
  recovery_action: 'resume' | 'retry',
): Decision<RunEvent, Run> {
  if (!state) return refuse('not_found')
  if (state.record.status !== 'failed')
    return refuse('run_not_failed', { status: state.record.status })
  if (input.refused_start) return input.refused_start
  const from =
    input.from_step === undefined ? state.engine.position : positionOf(state, input.from_step)
  if (typeof from !== 'number') return from
  const { loop_id, loop_version, queue_reason } = state.record
  if (
    loop_id !== undefined &&
    input.current_version !== undefined &&
    input.current_version !== loop_version
  )
    return refuse('run_version_superseded', {
      loop_version,
      current_version: input.current_version,
    })
  const blocked = limitNotRaised(state, input, cause)
  if (blocked) return blocked
  if (input.spent_budget) return refuse('budget_exhausted', { ...input.spent_budget })
  const replaced = input.input === undefined ? undefined : inputFor(state, input.input)
  if (isRefusal(replaced)) return replaced
  const draft = newDraft(state, cause)
  const { attempt, wall_deadline, position } = state.engine
  const { reason, from_step, wall_clock_extend_seconds: extend } = input
  const back = from < position
  const again = from_step !== undefined || replaced !== undefined
  const at = state.spec.steps[from]
  const step = at && { step: keyOf(at, from) }
  emit(draft, 'run.resumed', {
    ...step,
    payload: {
      recovery_action,
      attempt: attempt + 1,
      ...step,
      ...(reason !== undefined && { reason }),
      ...(from_step !== undefined && { from_step }),
      ...(replaced && { input_changed: true }),
    },
    ...(again && { drops: branchPrefixes(state, from) }),
    run: {
      status: 'queued',
      ...(replaced && { input: replaced }),
      error_type: null,
      error_message: null,
      completed_at: null,
      stop_reason: null,
      ...raised(input),
      ...(queue_reason && { queue_reason: null }),
      ...(loop_id !== undefined && {
        attempt: attempt + 1,
        ...(extend !== undefined && {
          wall_clock_deadline_at: timestamp(cause.at + extend * 1000),
        }),
      }),
      ...(state.record.cancel_requested && { cancel_requested: false, cancel_requested_at: null }),
    },
    note: {
      engine: {
        attempt: attempt + 1,
        ...(extend !== undefined &&
          wall_deadline !== undefined && { wall_deadline: cause.at + extend * 1000 }),
        ...(back && { position: from, tries: 0 }),
        ...(state.record.cancel_requested && { cancel_reason: null }),
        ...(state.engine.replaced && { replaced: null }),
        ...(state.engine.spent_out && { spent_out: null }),
        ...(loop_id !== undefined && { held: recovery_action }),
        ...callerOf(state, cause),
      },
      ...(again && state.join && { join: null }),
    },
  })
  if (loop_id !== undefined) {
    tellLoop(draft, 'run.returns', {
      run_id: state.record.id,
      ...(state.engine.trigger_id !== undefined && { trigger_id: state.engine.trigger_id }),
    })
    return replyWithRecord(draft)
  }
  if (!back) repeatStep(draft, recovery_action)
  advance(draft)
  return replyWithRecord(draft)
}

/** Returns the prefixes of the keys of all steps in branches of the steps from the given index on. */
function branchPrefixes({ spec: { steps }, engine }: RunState, from: number): string[] {
  return steps
    .slice(0, engine.position + 1)
    .flatMap((step, index) =>
      index >= from && (step.kind === 'for_each' || step.kind === 'parallel')
        ? [prefixBelow(steps, keyOf(step, index))]
        : [],
    )
}

/**
 * Returns the principal for whom a recovered direct call acts: the principal that recovers it. Other
 * runs keep the principal that started them.
 */
function callerOf({ engine }: RunState, { principal }: Cause): Pick<Engine, 'actor'> {
  return engine.invoked && engine.actor?.principal_id !== principal.id
    ? { actor: actorOf(principal) }
    : {}
}

/**
 * Returns the new input for a recovery, completed with the declared defaults. Refuses a new input
 * for a run of a loop, which keeps the event that started it, and for a direct call of an action,
 * whose parameters are literal. With a new input, the branches of the repeated step start from the
 * beginning, because their items may depend on the input.
 */
function inputFor({ record, engine, spec }: RunState, input: JsonObject): JsonObject | Refusal {
  const refused = (message: string) => refuseFields({ field: 'input', message })
  if (record.loop_id !== undefined)
    return refused('cannot be replaced, because a run of a loop keeps the event that started it')
  if (engine.invoked)
    return refused('cannot be replaced in a direct call of an action; call the action again')
  const completed = applyDeclaredDefaults(spec.input, input, 'input')
  return 'faults' in completed ? refuseFields(...completed.faults) : (completed.values ?? {})
}

/** Returns the budget and the limit on agent turns that a recovery sets. */
function raised(input: Recover): {
  readonly credit_budget?: number
  readonly max_agent_turns?: number
} {
  const budget = milliOf(input)
  return {
    ...(budget !== undefined && { credit_budget: creditsOf(budget) }),
    ...(input.max_agent_turns !== undefined && { max_agent_turns: input.max_agent_turns }),
  }
}

/**
 * Returns the index of a step by its key. Refuses unknown steps (`not_found`) and steps that the
 * run has not reached.
 */
function positionOf(state: RunState, from_step: string): number | Refusal {
  const index = state.spec.steps.findIndex((step, at) => keyOf(step, at) === from_step)
  if (index < 0)
    return refuse('not_found', { step_key: from_step }, `The run has no step ${from_step}.`)
  if (index <= state.engine.position) return index
  return refuseFields({
    field: 'from_step',
    message: 'the run has not reached this step',
    actual: from_step,
  })
}

/**
 * Begins another attempt of the failed step. Its retry policy counts attempts from 1 again. Does
 * nothing if a limit ended the run before the next step began.
 */
export function repeatStep(draft: Draft, recovery_action: string): void {
  const at = current(draft)
  if (at?.row?.status !== 'failed') return
  const { step, key, row } = at
  emit(draft, 'step.retried', {
    step: key,
    payload: {
      step: key,
      kind: step.kind,
      attempt: row.attempt + 1,
      max_attempts: row.attempt + attemptsOf(step),
      retry_scope: 'run_recovery',
      recovery_action,
      error: row.error_message,
      error_type: row.error_type,
    },
    row: {
      status: 'running',
      attempt: row.attempt + 1,
      ...withoutAttempt,
    },
    run: { status: 'running' },
    note: { engine: { tries: 1, executed: draft.state.engine.executed + 1 } },
  })
}

function limitNotRaised(
  { record, engine }: RunState,
  input: Recover,
  cause: Cause,
): Refusal | undefined {
  const { stop_reason, credit_spent = 0, agent_turns_used = 0 } = record
  if (stop_reason === 'step_limit_reached')
    return refuse(
      'limit_not_raised',
      { limit_kind: 'steps' },
      'The run has reached the maximum number of steps; start a new run.',
    )
  const over =
    stop_reason === 'wall_clock_exceeded' || (engine.wall_deadline ?? Infinity) <= cause.at
  if (over && input.wall_clock_extend_seconds === undefined)
    return refuse(
      'limit_not_raised',
      { limit_kind: 'wall_clock', field: 'wall_clock_extend_seconds' },
      'The time limit of the run has been reached; set wall_clock_extend_seconds.',
    )
  const { credit_budget = 0, max_agent_turns = 0 } = { ...record, ...raised(input) }
  if (credit_budget > 0 && credit_spent >= credit_budget)
    return refuse(
      'limit_not_raised',
      { limit_kind: 'budget', field: 'credit_budget', credit_spent, credit_budget },
      'The run has spent its budget; set a larger one.',
    )
  const tight = raised(input).max_agent_turns !== undefined || stop_reason === 'turn_limit_reached'
  return tight && agent_turns_used >= max_agent_turns
    ? refuse(
        'limit_not_raised',
        { limit_kind: 'agent_turns', field: 'max_agent_turns', agent_turns_used, max_agent_turns },
        'The run has used its agent turns; set a larger max_agent_turns.',
      )
    : undefined
}
