/**
 * How steps and runs begin and end. Nothing here decides what comes next: that is the engine's (advance.ts).
 *
 * Invariants:
 * O1. The event that ends a run is the last one of its commit, and carries the `status` that clients look for.
 * O2. A step begins with `step.started` once; later attempts begin with `step.retried`.
 */
import type { RunEventType, RunStep } from '../../protocol/api/runs.ts'
import { parseDuration, timestamp, type Open } from '../../protocol/common.ts'
import { ExpressionError } from '../../protocol/language/expression.ts'
import { renderNative } from '../../protocol/language/template.ts'
import type { Step } from '../../protocol/spec.ts'
import { current, emit, now, tellInteraction, withdraw, type Draft } from './draft.ts'
import { outputs, rootsOf } from './roots.ts'
import type { Note, Wait } from './state.ts'

/** Why a step or a run failed. */
export interface Fault {
  readonly error_type: string
  readonly error: string
}

/** Total attempts that a step allows; also bounded by the service. */
export const attemptsOf = (step: Step): number => Math.min(step.retry?.max_attempts ?? 1, 10)

/** Do something for the current step; an expression that fails while being evaluated fails the attempt. */
export function attempting(on: Draft, work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    beginStep(on)
    failStep(on, { error_type: 'expression_error', error: error.message })
  }
}

/** Begin the current step, unless it has begun. */
export function beginStep(on: Draft): void {
  const at = current(on)
  if (!at || at.row) return
  const { step, key } = at
  emit(on, 'step.started', {
    step: key, payload: { step: key, kind: step.kind }, row: { ...birth(on, step, key), status: 'running', started_at: now(on) }, ...moving(on),
    note: { engine: { executed: on.state.engine.executed + 1, tries: 1 } },
  })
}

const birth = (on: Draft, step: Step, key: string): Partial<RunStep> => ({
  id: `${on.state.record.id}:${key}`, run_id: on.state.record.id, step_key: key, kind: step.kind, seq: on.state.engine.position, attempt: 1, created_at: now(on),
  ...(step.name !== undefined && { step_name: step.name }),
  parameters: { ...(step.kind === 'action' ? step.config.parameters : step.config) },
})
/** A recovered run is `queued` until its next step moves. */
const moving = (on: Draft) => on.state.record.status === 'queued' && { run: { status: 'running' as const } }
/** The engine at the step after this one. */
const past = (on: Draft): Note => ({ engine: { position: on.state.engine.position + 1, tries: 0 } })

/** The current step's condition is false. */
export function skipStep(on: Draft): void {
  const at = current(on)
  if (!at) return
  const { step, key, row } = at
  const rest = { status: 'skipped' as const, completed_at: now(on), waiting_on: null }
  emit(on, 'step.skipped', { step: key, payload: { step: key, kind: step.kind, reason: 'the condition is false' }, row: row ? rest : { ...birth(on, step, key), ...rest }, ...moving(on), note: past(on) })
}

/** The current step is done. */
export function completeStep(on: Draft, output: Open): void {
  const key = current(on)?.key ?? ''
  emit(on, 'step.completed', {
    step: key, payload: { step: key, output }, note: past(on),
    row: { status: 'completed', result: output, completed_at: now(on), waiting_on: null, error_type: null, error_message: null },
  })
}

/**
 * The current attempt of the current step failed: try again as its policy says, at once or after its delay, else fail the
 * run. With `final` the policy has no say, because it was applied elsewhere or no attempt could do better.
 */
export function failStep(on: Draft, fault: Fault, final = false): void {
  const at = current(on)
  if (!at?.row) failRun(on, fault)
  else if (!final && on.state.engine.tries < attemptsOf(at.step)) retryStep(on, fault, at.step, at.row, at.key)
  else {
    const { key, row } = at
    emit(on, 'step.failed', {
      step: key, payload: { step: key, ...fault, attempt: row.attempt },
      row: { status: 'failed', error_type: fault.error_type, error_message: fault.error, completed_at: now(on), waiting_on: null },
    })
    failRun(on, fault, key)
  }
}

function retryStep(on: Draft, fault: Fault, step: Step, row: RunStep, key: string): void {
  const { tries, executed } = on.state.engine
  const delay = parseDuration(step.retry?.delay ?? '0') ?? 0
  const due = on.cause.at + delay
  const until = timestamp(due)
  const wait: Wait | undefined = delay > 0 ? { kind: 'retry', step: key, due } : undefined
  emit(on, 'step.retried', {
    step: key,
    payload: { step: key, kind: step.kind, attempt: row.attempt + 1, max_attempts: row.attempt - tries + attemptsOf(step), retry_scope: 'step_policy', ...fault, ...(wait && { retry_at: until }) },
    row: wait
      ? { status: 'suspended', attempt: row.attempt + 1, waiting_on: { kind: 'retry', reason: `The next attempt begins at ${until}; the last one failed: ${fault.error}`, until, step_key: key } }
      : { status: 'running', attempt: row.attempt + 1, waiting_on: null },
    note: { engine: { tries: tries + 1, executed: executed + 1, ...(wait && { wait }) } },
  })
  if (wait && on.state.record.status !== 'suspended') {
    emit(on, 'run.suspended', { step: key, payload: { step: key, wait_kind: 'timer', deadline: until, reason: 'retry' }, run: { status: 'suspended' } })
  }
}

/** End the wait of the current step, if there is one, with the event that says how. */
export function endWait(on: Draft, how: 'wait.resumed' | 'wait.timed_out' | 'wait.closed', payload: Open = {}, take?: string): void {
  const { wait } = on.state.engine
  if (!wait) return
  const type: RunEventType = 'id' in wait ? how : 'wait.closed'
  emit(on, type, {
    step: wait.step, payload: { step: wait.step, ...('id' in wait && { wait_id: wait.id, wait_kind: wait.kind }), ...payload },
    ...(wait.kind !== 'pause' && { row: { waiting_on: null } }), note: { engine: { wait: null }, ...(take !== undefined && { take }) },
  })
}

/** The current step, whose wait has ended, moves again; one that has not begun to wait has nothing to say. */
export function resumeStep(on: Draft): void {
  const at = current(on)
  if (at?.row?.status === 'suspended') emit(on, 'step.resumed', { step: at.key, payload: { step: at.key, kind: at.step.kind }, row: { status: 'running', waiting_on: null } })
}

/** The run has failed; `step` is the one that failed it. */
export function failRun(on: Draft, fault: Fault, step?: string): void {
  emit(on, 'run.failed', {
    ...(step !== undefined && { step }), payload: { status: 'failed', ...fault, ...(step !== undefined && { step }) },
    run: { status: 'failed', error_type: fault.error_type, error_message: fault.error, completed_at: now(on) },
  })
}

/** End the run because it was asked to: its wait is closed and the step that was under way is cancelled. */
export function cancelRun(on: Draft): void {
  const reason = on.state.engine.cancel_reason
  const because = reason !== undefined && { reason }
  withdraw(on, reason ?? 'the run was cancelled')
  for (const id of on.state.engine.asked ?? []) tellInteraction(on, id, 'interaction.withdraw', { reason: reason ?? 'the run was cancelled' })
  endWait(on, 'wait.closed', { reason: 'cancelled' })
  const at = current(on)
  if (at?.row) emit(on, 'step.cancelled', { step: at.key, payload: { step: at.key, kind: at.step.kind, ...because }, row: { status: 'cancelled', completed_at: now(on), waiting_on: null } })
  emit(on, 'run.cancelled', { payload: { status: 'cancelled', ...because }, run: { status: 'cancelled', completed_at: now(on) }, ...(on.state.engine.asked && { note: { engine: { asked: null } } }) })
}

/** Every step is done: the result is the rendered `output` block, else the outputs of all steps by key. */
export function completeRun(on: Draft): void {
  const { state } = on
  try {
    const output = state.spec.output ? (renderNative(state.spec.output, rootsOf(state)) as Open) : Object.fromEntries(outputs(state))
    emit(on, 'run.completed', { payload: { output, status: 'completed' }, run: { status: 'completed', result: output, completed_at: now(on) } })
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    failRun(on, { error_type: 'expression_error', error: `output: ${error.message}` })
  }
}
