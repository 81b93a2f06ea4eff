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
export function executeBranches(draft: Draft, step: JoinStep): void {
  const key = current(draft)?.key ?? ''
  const { join: before } = draft.state
  if (before)
    emit(draft, 'branches.begun', {
      note: { join: { next: 0, failed: 0, todo: unfinished(draft, before) } },
    })
  else {
    const items = step.kind === 'for_each' ? itemsOf(draft, step) : undefined
    const count = step.kind === 'for_each' ? items?.length : step.config.branches.length
    if (count === undefined || count > MAX_ITEMS) {
      failStep(
        draft,
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
      completeStep(draft, outputOf(draft, step, { count, done: 0, failed: 0 }))
      return
    }
    emit(draft, 'branches.begun', {
      note: {
        join: { step: key, count, ...(items && { items }), next: 0, done: 0, failed: 0, size: 0 },
      },
    })
  }
  const count = draft.state.join?.count ?? 0
  const due = dueOf(draft, step)
  const wait: OpenWait = {
    kind: 'branches',
    step: key,
    id: draft.cause.mint('wait'),
    ...(due !== undefined && { due }),
  }
  suspend(
    draft,
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
  draft: Draft,
  { config: { items } }: Extract<JoinStep, { kind: 'for_each' }>,
): readonly unknown[] | undefined {
  const list =
    typeof items === 'string'
      ? evaluate(items, expressionScope(draft))
      : renderNative(items, expressionScope(draft))
  return Array.isArray(list) ? list : undefined
}
const unfinished = (draft: Draft, { count }: Join): number[] =>
  Array.from({ length: count }, (_, index) => index).filter((index) => {
    const result = yieldOf(draft.state, index)
    return !result || 'fault' in result
  })
