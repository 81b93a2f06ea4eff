/**
 * The engine: executes steps in the order of the spec until one waits or the run ends. The start
 * and end of a single step are in outcome.ts, its work in `../steps/`.
 *
 * Invariants:
 * E1. A call to `advance` returns only when the run waits or has ended. While it waits, the run is
 *     `suspended`, unless the wait is not confirmed yet or is a pause.
 * E2. `advance` emits `run.resumed` before a suspended run executes a step or completes. A step
 *     that goes from a wait directly into its retry delay does not resume the run. Some operator
 *     commands emit their own `run.resumed` (../commands/control.ts).
 * E3. Commits are bounded, so one command emits a bounded number of events. When that number is
 *     reached, a run that could continue pauses, and a timer that is due immediately continues it.
 * E4. The condition `if` of a step is evaluated before every attempt that the engine begins. A
 *     retry after an error in `if` therefore evaluates it again.
 */
import { predicate } from '../../../protocol/rules/expressions/expression.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, type Draft, emit } from '../draft.ts'
import { stopAtLimit } from '../limits.ts'
import { hasEnded } from '../state.ts'
import { executeAction } from '../steps/action.ts'
import { executeAgent } from '../steps/agent.ts'
import { executeBranches } from '../steps/branches.ts'
import { executeCheck } from '../steps/check.ts'
import { executeInteraction } from '../steps/interaction.ts'
import { executeLoop } from '../steps/loop.ts'
import { executeSleep } from '../steps/sleep.ts'
import { executeWait } from '../steps/wait.ts'
import { advanceBranches, workOf } from './branches.ts'
import { completeRun, concludeCleanup } from './ending.ts'
import { expressionScope } from './expression-scope.ts'
import { beginStep, catchExpressionFault, skipStep } from './outcome.ts'

/**
 * Amount of work in one commit after which a run pauses (`workOf`). The last step may add a few more
 * events.
 */
const PAUSE_AFTER = 300

/** Executes steps until one waits or the run ends. */
export function advance(draft: Draft): void {
  for (;;) {
    const { record, engine } = draft.state
    if (hasEnded(draft.state)) return
    if (engine.wait) {
      if (engine.wait.kind !== 'branches' || !advanceBranches(draft, take)) return
      continue
    }
    draft.at = undefined
    const at = current(draft)
    if (record.status === 'suspended')
      emit(draft, 'run.resumed', {
        payload: at ? { step: at.key, ...draft.why } : draft.why,
        run: { status: 'running' },
        ...(at && { step: at.key }),
      })
    if (!at) finish(draft)
    else if (workOf(draft) >= PAUSE_AFTER) pause(draft, at.key)
    else if (!stopAtLimit(draft)) catchExpressionFault(draft, () => take(draft, at.step))
  }
}

const finish = (draft: Draft): void =>
  draft.state.engine.ending ? concludeCleanup(draft) : completeRun(draft)
/**
 * Leaves the remaining steps to a later commit. The run stays `running` for clients, because it
 * waits for nothing external.
 */
export const pause = (draft: Draft, step: string): void =>
  emit(draft, 'run.paused', {
    step,
    ...(draft.state.record.status !== 'running' && { run: { status: 'running' } }),
    place: { wait: { kind: 'pause', step, due: draft.cause.at + 1 } },
  })

function take(draft: Draft, step: Step): void {
  if (step.if !== undefined && !predicate(step.if, expressionScope(draft))) {
    skipStep(draft)
    return
  }
  // For the run itself, `advance` has already checked the limits.
  if (draft.at !== undefined && stopAtLimit(draft)) return
  beginStep(draft)
  const execute = executors[step.kind] as (draft: Draft, step: Step) => void
  execute(draft, step)
}

const executors: {
  readonly [K in Step['kind']]: (draft: Draft, step: Extract<Step, { kind: K }>) => void
} = {
  action: executeAction,
  sleep: executeSleep,
  wait_for_event: executeWait,
  interaction: executeInteraction,
  check: executeCheck,
  loop: executeLoop,
  parallel: executeBranches,
  for_each: executeBranches,
  agent: executeAgent,
}
