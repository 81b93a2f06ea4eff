/**
 * A step with branches: begins the branches and waits while they run (`../engine/branches.ts`). A
 * later attempt of the step runs only the branches that have no output yet.
 */
import { evaluate } from '../../../protocol/rules/expressions/expression.ts'
import { renderNative } from '../../../protocol/rules/expressions/template.ts'
import { current, type Draft, emit } from '../draft.ts'
import { yieldOf } from '../engine/branch-state.ts'
import { type JoinStep, outputOf } from '../engine/branches.ts'
import { expressionScope } from '../engine/expression-scope.ts'
import { completeStep, failStep } from '../engine/outcome.ts'
import { suspend } from '../engine/suspend.ts'
import type { Join, OpenWait } from '../state.ts'
import { dueOf } from './timeout.ts'

/** Maximum number of items of one step. */
const MAX_ITEMS = 10_000

/**
 * Begins the branches. A list without items completes the step immediately. A value that is not a
 * list, or a list with too many items, fails the step.
 */
export function executeBranches(on: Draft, step: JoinStep): void {
  const key = current(on)?.key ?? ''
  const { join: before } = on.state
  if (before)
    emit(on, 'branches.begun', {
      note: { join: { next: 0, failed: 0, todo: unfinished(on, before) } },
    })
  else {
    const items = step.kind === 'for_each' ? itemsOf(on, step) : undefined
    const count = step.kind === 'for_each' ? items?.length : step.config.branches.length
    if (count === undefined || count > MAX_ITEMS) {
      failStep(
        on,
        {
          error_type: 'items_invalid',
          error:
            count === undefined
              ? 'The items are not a list'
              : `There are ${count} items; a step processes at most ${MAX_ITEMS}`,
        },
        true,
      )
      return
    }
    if (count === 0) {
      completeStep(on, outputOf(on, step, { count, done: 0, failed: 0 }))
      return
    }
    emit(on, 'branches.begun', {
      note: {
        join: { step: key, count, ...(items && { items }), next: 0, done: 0, failed: 0, size: 0 },
      },
    })
  }
  const count = on.state.join?.count ?? 0
  const due = dueOf(on, step)
  const wait: OpenWait = {
    kind: 'branches',
    step: key,
    id: on.cause.mint('wait'),
    ...(due !== undefined && { due }),
  }
  suspend(
    on,
    wait,
    { count },
    {
      waiting_on: {
        kind: 'branches',
        reason: `Waits for its ${count} ${step.kind === 'parallel' ? 'branches' : 'items'}`,
        step_key: key,
      },
    },
  )
}

function itemsOf(
  on: Draft,
  { config: { items } }: Extract<JoinStep, { kind: 'for_each' }>,
): readonly unknown[] | undefined {
  const list =
    typeof items === 'string'
      ? evaluate(items, expressionScope(on))
      : renderNative(items, expressionScope(on))
  return Array.isArray(list) ? list : undefined
}
const unfinished = (on: Draft, { count }: Join): number[] =>
  Array.from({ length: count }, (_, index) => index).filter((index) => {
    const given = yieldOf(on.state, index)
    return !given || 'fault' in given
  })
