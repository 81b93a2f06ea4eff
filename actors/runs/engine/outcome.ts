/**
 * The start and end of steps, in the run itself and in its branches. The engine (advance.ts)
 * decides which step comes next.
 *
 * Invariants:
 * O1. The first attempt of a step begins with `step.started`, later attempts with `step.retried`. A
 *     repeated branch begins its steps from scratch.
 * O2. A step that fails permanently fails the run. In a branch it marks the branch as failed
 *     instead; in the cleanup the next cleanup step follows.
 */

import { type JsonObject, parseDuration, timestamp } from '../../../protocol/common.ts'
import type { StopReason } from '../../../protocol/loops/run.ts'
import type { Patch } from '../../../protocol/patch.ts'
import { ExpressionError } from '../../../protocol/rules/expressions/expression.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import type { RunStep } from '../../../protocol/runs/schema.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, type Draft, emit, now, type Parts, progressOf } from '../draft.ts'
import { branchAt, type Note, rowOf, type Wait } from '../state.ts'
import { failRun, type RunFault } from './ending.ts'
import { isCancelling } from './places.ts'
import { countedSize, outputSizeFault } from './retained.ts'

/** Returns the maximum number of attempts that the retry policy of a step allows, at most 10. */
export const attemptsOf = (step: Step): number => Math.min(step.retry?.max_attempts ?? 1, 10)

/**
 * Runs `work` for the current step. If an expression cannot be evaluated, calls `otherwise` with
 * the fault or, without `otherwise`, fails the attempt.
 */
export function catchExpressionFault(
  draft: Draft,
  work: () => void,
  otherwise?: (fault: RunFault) => void,
): void {
  try {
    work()
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    const fault = { error_type: 'expression_error', error: error.message }
    if (otherwise) {
      otherwise(fault)
      return
    }
    beginStep(draft)
    failStep(draft, fault)
  }
}

/** Returns the kind that the timeline shows for a step: `cleanup` for every cleanup step. */
const kindOf = ({ state: { engine } }: Draft, { kind }: Step): RunStep['kind'] =>
  engine.ending ? 'cleanup' : kind
/** Returns the run's attempt counters, including a new attempt of the current step. */
const counted = ({
  at,
  state: {
    engine: { executed, aside = 0 },
  },
}: Draft): { executed: number; aside?: number } => ({
  executed: executed + 1,
  ...(at !== undefined && { aside: aside + 1 }),
})

/**
 * Begins the current step, unless it is already active. If the step has already ended and a
 * recovery repeats it, begins another attempt.
 */
export function beginStep(draft: Draft): void {
  const at = current(draft)
  if (!at) return
  const { step, key, row } = at
  if (row && !terminalRow(row)) return
  const place = { place: { tries: 1 }, note: { engine: counted(draft) } }
  // A step that has only been skipped so far has not started.
  if (row && row.started_at !== undefined) {
    emit(draft, 'step.retried', {
      step: key,
      payload: {
        step: key,
        kind: row.kind,
        attempt: row.attempt + 1,
        max_attempts: row.attempt + attemptsOf(step),
        retry_scope: 'run_recovery',
      },
      row: {
        status: 'running',
        attempt: row.attempt + 1,
        ...withoutAttempt,
      },
      ...place,
      ...moving(draft),
    })
    return
  }
  emit(draft, 'step.started', {
    step: key,
    payload: { step: key, kind: kindOf(draft, step), ...whom(draft, step) },
    row: extended(birth(draft, step, key), {
      ...(row && { completed_at: null }),
      ...(inRepeatedBranch(draft) && withoutAttempt),
      status: 'running' as const,
      started_at: now(draft),
    }),
    ...moving(draft),
    ...place,
  })
}
function whom(
  { state: { engine } }: Draft,
  { kind, config }: Step,
): { readonly agent_id?: string } {
  const agent_id = kind === 'agent' ? (config.agent_id ?? engine.agent_id) : undefined
  return agent_id === undefined ? {} : { agent_id }
}
const terminalRow = ({ status }: RunStep): boolean =>
  status === 'completed' || status === 'failed' || status === 'skipped' || status === 'cancelled'
const cleared = { error_type: null, error_message: null } as const
/** Removes from the record of a step what an earlier attempt stored in it. */
export const withoutAttempt = {
  ...cleared,
  result: null,
  completed_at: null,
  inputs: null,
  job_id: null,
  wait_id: null,
  session_id: null,
  agent_id: null,
  agent_turn_id: null,
  verdict: null,
  verdict_detail: null,
} as const
/**
 * Whether an earlier attempt of the step that contains the current branch may have executed the
 * current step. The run then has no record of the step, but the views have one.
 */
const inRepeatedBranch = ({ at, state }: Draft): boolean =>
  at !== undefined && (rowOf(state, state.join?.step ?? '')?.attempt ?? 1) > 1

const birth = (draft: Draft, step: Step, key: string): Partial<RunStep> => ({
  id: `${draft.state.record.id}:${key}`,
  run_id: draft.state.record.id,
  step_key: key,
  kind: kindOf(draft, step),
  seq: seqOf(draft),
  attempt: 1,
  created_at: now(draft),
  ...(step.name !== undefined && { step_name: step.name }),
  parameters: { ...(step.kind === 'action' ? step.config.parameters : step.config) },
})
/**
 * Returns the sequence number of the current step. A step of a branch has the number of its parent
 * step. Cleanup steps come after all other steps.
 */
const seqOf = ({ state: { engine, spec } }: Draft): number =>
  engine.ending ? spec.steps.length + engine.position : engine.position
/**
 * Returns the patch that changes a queued run to `running`. A recovered run is `queued` until its
 * next step begins.
 */
const moving = (draft: Draft) =>
  draft.state.record.status === 'queued' && { run: { status: 'running' as const } }
const past = (draft: Draft): Parts => ({
  place: { position: progressOf(draft).position + 1, tries: 0 },
})

/**
 * Returns the note that drops the branches of the current step and their outcomes, or undefined if
 * it has none. A later step with branches begins with its own.
 */
const joined = ({ at, state }: Draft, key: string): Note | undefined =>
  at === undefined && state.join?.step === key ? { join: null } : undefined

/**
 * Skips the current step, because its condition is false. An earlier attempt of the step may have
 * run branches, whose outcomes are dropped.
 */
export function skipStep(draft: Draft): void {
  const at = current(draft)
  if (!at) return
  const { step, key, row } = at
  const rest = {
    ...((row || inRepeatedBranch(draft)) && withoutAttempt),
    ...(!row && inRepeatedBranch(draft) && { started_at: null }),
    status: 'skipped' as const,
    completed_at: now(draft),
    waiting_on: null,
  }
  const reason = 'the condition is false'
  const note = joined(draft, key)
  emit(draft, 'step.skipped', {
    step: key,
    payload: { step: key, kind: kindOf(draft, step), reason },
    row: row ? rest : { ...birth(draft, step, key), ...rest },
    ...moving(draft),
    ...past(draft),
    ...(note && { note }),
  })
}

/**
 * Returns the changes after a completed step: the next position, and the size of the output that
 * the run retains. For a step with branches, the outcomes of the branches are dropped.
 */
function counting(draft: Draft, key: string, size: number, { place }: Parts): Parts {
  const note = joined(draft, key)
  if (size === 0) return { ...(place && { place }), ...(note && { note }) }
  if (draft.at !== undefined)
    return { place: { ...place, size: (branchAt(draft.state, draft.at)?.size ?? 0) + size } }
  const sizes = { ...draft.state.engine.sizes, [key]: size }
  return { ...(place && { place }), note: { ...note, engine: { sizes } } }
}

/**
 * Completes the current step. The step fails if the run cannot retain its output (retained.ts).
 * @param row additional changes to the step's record.
 */
export const completeStep = (draft: Draft, output: JsonObject, row: Patch<RunStep> = {}): void =>
  complete(draft, output, row, (fault) => failStep(draft, fault, true))

/**
 * Completes the current step with the result of its job, child run or turn, as `completeStep` does.
 * If the run is being cancelled and cannot retain the output, only the step fails: the caller ends
 * the run as cancelled.
 */
export const completeWork = (draft: Draft, output: JsonObject): void =>
  complete(draft, output, {}, (fault) => {
    const at = current(draft)
    if (at?.row && isCancelling(draft.state)) emitFailure(draft, at.key, at.row, fault)
    else failStep(draft, fault, true)
  })

function complete(
  draft: Draft,
  output: JsonObject,
  row: Patch<RunStep>,
  refuse: (fault: RunFault) => void,
): void {
  const key = current(draft)?.key ?? ''
  const size = countedSize(output)
  const fault = outputSizeFault(draft, key, size)
  if (fault) {
    refuse(fault)
    return
  }
  emit(draft, 'step.completed', {
    step: key,
    payload: { step: key, output },
    ...counting(draft, key, size, past(draft)),
    row: {
      status: 'completed',
      result: output,
      completed_at: now(draft),
      waiting_on: null,
      ...cleared,
      ...row,
    },
  })
}

/**
 * Handles a failed attempt of the current step: retries it as its policy allows, immediately or
 * after the delay. Otherwise the step fails, with the consequences of O2.
 * @param final true if the step must not be retried, because its retry policy was already applied
 * elsewhere, or because another attempt cannot succeed.
 * @param row additional changes to the step's record if the step fails.
 * @param stop the stop reason of the run if it ends; by default `step_failed`.
 */
export function failStep(
  draft: Draft,
  fault: RunFault,
  final = false,
  row: Patch<RunStep> = {},
  stop?: StopReason,
): void {
  const at = current(draft)
  if (!at?.row) {
    failRun(draft, fault, undefined, stop)
    return
  }
  if (!final && progressOf(draft).tries < attemptsOf(at.step)) {
    retryStep(draft, fault, at.step, at.row, at.key)
    return
  }
  const { key } = at
  const cleaning = draft.at === undefined && draft.state.engine.ending !== undefined
  emitFailure(draft, key, at.row, fault, { row, ...(cleaning && past(draft)) })
  if (draft.at === undefined && !cleaning) failRun(draft, fault, key, stop)
}

/** Records the failure of the current step, and marks its branch as failed. */
function emitFailure(
  draft: Draft,
  key: string,
  { attempt }: RunStep,
  fault: RunFault,
  { row, ...more }: Pick<Parts, 'place'> & { readonly row?: Patch<RunStep> } = {},
): void {
  emit(draft, 'step.failed', {
    step: key,
    payload: { step: key, ...fault, attempt },
    row: {
      status: 'failed',
      error_type: fault.error_type,
      error_message: fault.error,
      completed_at: now(draft),
      waiting_on: null,
      ...row,
    },
    ...more,
    ...(draft.at !== undefined && { place: { fault } }),
  })
}

function retryStep(draft: Draft, fault: RunFault, step: Step, row: RunStep, key: string): void {
  const { tries } = progressOf(draft)
  const delay = parseDuration(step.retry?.delay ?? '0') ?? 0
  const due = draft.cause.at + delay
  const until = timestamp(due)
  const wait: Wait | undefined = delay > 0 ? { kind: 'retry', step: key, due } : undefined
  emit(draft, 'step.retried', {
    step: key,
    payload: {
      step: key,
      kind: kindOf(draft, step),
      attempt: row.attempt + 1,
      max_attempts: row.attempt - tries + attemptsOf(step),
      retry_scope: 'step_policy',
      ...fault,
      ...(wait && { retry_at: until }),
    },
    row: wait
      ? {
          status: 'suspended',
          attempt: row.attempt + 1,
          waiting_on: {
            kind: 'retry',
            reason: `The next attempt begins at ${until}; the last one failed: ${fault.error}`,
            until,
            step_key: key,
          },
        }
      : { status: 'running', attempt: row.attempt + 1, waiting_on: null },
    place: { tries: tries + 1, ...(wait && { wait }) },
    note: { engine: counted(draft) },
  })
  if (wait && draft.at === undefined && draft.state.record.status !== 'suspended') {
    emit(draft, 'run.suspended', {
      step: key,
      payload: { step: key, wait_kind: 'timer', deadline: until, reason: 'retry' },
      run: { status: 'suspended' },
    })
  }
}
