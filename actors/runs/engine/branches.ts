/**
 * Branches of a `parallel` step and items of a `for_each`, within one run. Each branch executes its
 * own steps in order. Meanwhile, the run itself has a wait of kind `branches`.
 * `../steps/branches.ts` begins the step.
 *
 * Invariants:
 * B1. The number of active branches does not exceed the limit of the step, so the work per event
 *     does not grow with the number of items.
 * B2. When a commit is full, a timer that is due immediately (`more_at`) continues the work.
 * B3. The outputs of branches survive a failure of the step: a later attempt runs only the branches
 *     without an output. A recovery with `from_step` or with a new input drops all outputs.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { renderNative } from '../../../protocol/rules/expressions/template.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, type Draft, emit, progressOf } from '../draft.ts'
import { type Branch, branchAt, type Join, type RunState, type Yield } from '../state.ts'
import { yieldOf } from './branch-state.ts'
import type { RunFault } from './ending.ts'
import { expressionScope, outputsAt } from './expression-scope.ts'
import { leaveBranches } from './leave-branches.ts'
import { catchExpressionFault, completeStep, failStep } from './outcome.ts'
import { bodyOf, mainStep, prefixBelow } from './places.ts'
import { endWait, resumeStep } from './resume.ts'

/** The step kinds that have branches. */
export type JoinStep = Extract<Step, { kind: 'parallel' | 'for_each' }>
/** Amount of work in one commit after which branches pause (`workOf`). */
const PAUSE_AFTER = 200
/** Maximum total length of the outputs of all branches, in characters of JSON. */
const MAX_OUTPUTS_LENGTH = 786_432
/** Default maximum number of concurrent branches of a step. */
const CONCURRENCY = 10

/**
 * Returns the amount of work in the commit: the number of events, plus 4 for each tell, because the
 * actors that receive tells add events to the commit.
 */
export const workOf = (draft: Draft): number => draft.events.length + 4 * draft.tells.length
/** Whether the commit is full, so that branches have to pause. */
export const isFull = (draft: Draft): boolean => workOf(draft) >= PAUSE_AFTER

/**
 * Makes one unit of progress: executes a step of a branch, begins or ends a branch, or ends the
 * step that contains the branches. If the commit is full, schedules a wake instead.
 * @param take executes a step.
 * @returns whether to continue; false if every branch waits or the commit is full.
 */
export function advanceBranches(draft: Draft, take: (draft: Draft, step: Step) => void): boolean {
  const { join, branches = [] } = draft.state
  const step = mainStep(draft.state)
  if (!join || (step?.kind !== 'parallel' && step?.kind !== 'for_each'))
    throw new Error('the run waits for branches that it does not have')
  const here = draft.at === undefined ? undefined : branchAt(draft.state, draft.at)
  const movable = (here && !here.wait ? here : branches.find(({ wait }) => !wait))?.key
  const live = branches.length
  const over = isDecided(join, step)
  const opens = !over && join.next < (join.todo?.length ?? join.count) && live < widthOf(step)
  draft.at = undefined
  if (!over && movable === undefined && !opens && live > 0) return false
  if (isFull(draft)) {
    emit(draft, 'run.paused', { note: { engine: { more_at: draft.cause.at + 1 } } })
    return false
  }
  if (over || (movable === undefined && !opens)) finish(draft, step, join)
  else if (movable === undefined) open(draft, step, join)
  else {
    draft.at = movable
    move(draft, take)
  }
  return true
}

const widthOf = (step: JoinStep): number =>
  step.kind === 'parallel'
    ? step.config.branches.length
    : (step.config.max_concurrency ?? CONCURRENCY)
/**
 * Whether the outcome of the step no longer depends on its remaining branches. The outputs are
 * checked after every branch, because the state of the run contains all of them.
 */
const isDecided = ({ done, failed, size }: Join, { config }: JoinStep): boolean =>
  size > MAX_OUTPUTS_LENGTH ||
  (config.join === 'any' && done > 0) ||
  (config.join === 'first_failure' && failed > 0)
const nameOf = (step: JoinStep, index: number): string =>
  step.kind === 'parallel' ? (step.config.branches[index]?.id ?? String(index)) : String(index)

function open(draft: Draft, step: JoinStep, join: Join): void {
  const index = join.todo ? (join.todo[join.next] ?? 0) : join.next
  emit(draft, 'branch.started', {
    step: join.step,
    payload: { step: join.step, branch: nameOf(step, index) },
    note: {
      at: prefixBelow(draft.state.spec.steps, join.step) + nameOf(step, index),
      place: { index, position: 0, tries: 0 },
      join: { next: join.next + 1 },
    },
  })
}

function move(draft: Draft, take: (draft: Draft, step: Step) => void): void {
  const { fault } = progressOf(draft) as Branch
  const at = current(draft)
  if (fault) close(draft, { fault })
  else if (at) catchExpressionFault(draft, () => take(draft, at.step))
  else close(draft, outcomeAtEnd(draft))
}

/**
 * Returns the outcome of a branch after its last step: its rendered `output` or, if it has none,
 * the outputs of its steps by key. An `output` that cannot be rendered fails the branch.
 */
function outcomeAtEnd(draft: Draft): Yield {
  const at = draft.at ?? ''
  const output = bodyOf(draft.state, at)?.output
  let what: Yield = { output: {} }
  catchExpressionFault(
    draft,
    () => {
      what = {
        output: output
          ? (renderNative(output, expressionScope(draft)) as JsonObject)
          : Object.fromEntries(outputsAt(draft.state, at)),
      }
    },
    (fault) => {
      what = { fault }
    },
  )
  return what
}

function close(draft: Draft, what: Yield): void {
  const {
    at,
    state: { join },
  } = draft
  const step = mainStep(draft.state) as JoinStep
  if (at === undefined || !join) return
  const { index } = progressOf(draft) as Branch
  const counted =
    'fault' in what
      ? { failed: join.failed + 1 }
      : {
          done: join.done + 1,
          size: join.size + JSON.stringify(what.output).length,
          ...(join.winner === undefined && { winner: index }),
        }
  emit(draft, 'fault' in what ? 'branch.failed' : 'branch.completed', {
    step: join.step,
    payload: { step: join.step, branch: nameOf(step, index), ...('fault' in what && what.fault) },
    note: { at, place: null, gave: { index, what }, join: counted },
  })
}

/** Ends the step and all branches that are still active. */
function finish(draft: Draft, step: JoinStep, join: Join): void {
  const faults = faultsOf(draft.state, join)
  leaveBranches(draft, 'the step no longer needs this branch')
  const fault = faultOf(step, join, faults)
  endWait(draft, fault ? 'wait.closed' : 'wait.resumed', fault ? { reason: fault.error_type } : {})
  draft.why = { reason: 'branches' }
  resumeStep(draft)
  if (fault) failStep(draft, fault, fault.error_type === 'output_too_large')
  else completeStep(draft, outputOf(draft, step, join, faults))
}

function faultOf(
  { config }: JoinStep,
  { done, failed, size, count }: Join,
  faults: readonly BranchFault[],
): RunFault | undefined {
  if (size > MAX_OUTPUTS_LENGTH)
    return {
      error_type: 'output_too_large',
      error: `The outputs have ${size} characters in total; at most ${MAX_OUTPUTS_LENGTH} are allowed`,
    }
  if (failed === 0 || config.on_failure === 'continue' || (config.join === 'any' && done > 0))
    return undefined
  return {
    error_type: 'branch_failed',
    error: `${failed} of ${count} failed; the first: ${faults[0]?.error ?? ''}`,
  }
}

type BranchFault = RunFault & { readonly index: number }
/**
 * Returns the faults of the branches that have failed in the current attempt of the step, in the
 * order of the branches. A branch that this attempt has not begun, or that is still active, may
 * have a fault of an earlier attempt.
 */
function faultsOf(state: RunState, { count, todo, next }: Join): BranchFault[] {
  const active = new Set(state.branches?.map(({ index }) => index))
  const begun = (todo ?? Array.from({ length: count }, (_, index) => index)).slice(0, next)
  return begun.flatMap((index) => {
    const outcome = active.has(index) ? undefined : yieldOf(state, index)
    return outcome && 'fault' in outcome ? [{ index, ...outcome.fault }] : []
  })
}

/**
 * Returns the output of a step with branches: the outputs of the branches, and their faults if any
 * failed.
 */
export function outputOf(
  draft: Draft,
  step: JoinStep,
  { count, done, failed, winner }: Pick<Join, 'count' | 'done' | 'failed' | 'winner'>,
  faults: readonly BranchFault[] = [],
): JsonObject {
  const outputs = Array.from({ length: count }, (_, index) => {
    const outcome = yieldOf(draft.state, index)
    return outcome && 'output' in outcome ? outcome.output : null
  })
  const won = step.config.join === 'any' && winner !== undefined && { winner: nameOf(step, winner) }
  if (step.kind === 'for_each')
    return {
      count,
      completed: done,
      failed,
      results: outputs,
      ...(failed > 0 && { errors: faults }),
      ...won,
    }
  const named = outputs.flatMap((output, index) => (output ? [[nameOf(step, index), output]] : []))
  return {
    branches: Object.fromEntries(named) as JsonObject,
    ...won,
    ...(failed > 0 && {
      errors: Object.fromEntries(faults.map(({ index, ...fault }) => [nameOf(step, index), fault])),
    }),
  }
}
