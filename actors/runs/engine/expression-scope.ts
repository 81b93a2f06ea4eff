/**
 * The values that expressions and templates of a run can read. Their evaluation is in
 * `protocol/rules/expressions/`.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { RunRecord } from '../../../protocol/loops/record.ts'
import type { Draft } from '../draft.ts'
import { branchAt, keyOf, type RunState, rowOf } from '../state.ts'
import { keyBelow, stepsAt } from './places.ts'

/**
 * Returns the roots `input` and `event` (the same value), `config`, `meta`, `run` (`runRoot`) and
 * `steps`. `steps` contains the completed steps by key and by index. System steps that prepare
 * repositories have no index. `steps` has no entry for a step that was skipped or has not run yet.
 * In a branch, `steps` also contains the branch's own steps, and an item has the roots `item` and
 * `index`.
 */
export function expressionScope({ state, at }: Pick<Draft, 'state' | 'at'>): JsonObject {
  const { record, engine } = state
  const input = record.input ?? {}
  const config = record.config ?? engine.config
  const meta = record.meta ?? engine.meta
  const run = runRoot(record, engine.attempt)
  const done = outputs(state)
  const system = engine.repositories?.length ?? 0
  // If the id of a step equals the index of another step, the step with the id takes precedence.
  const steps = [
    ...done.flatMap(([, output, index]) =>
      index < system ? [] : [[String(index - system), { output }] as const],
    ),
    ...done.map(([key, output]) => [key, { output }] as const),
  ]
  if (at === undefined)
    return { input, event: input, config, meta, run, steps: Object.fromEntries(steps) }
  const inner = outputsAt(state, at).map(([key, output]) => [key, { output }] as const)
  const index = branchAt(state, at)?.index ?? 0
  return {
    input,
    event: input,
    config,
    meta,
    run,
    steps: Object.fromEntries([...steps, ...inner]),
    ...(state.join?.items && { item: state.join.items[index] ?? null, index }),
  }
}

/**
 * Returns the root `run`. It always describes the run that evaluates the expression, even if `meta`
 * contains the ids of other runs.
 * @param attempt number of the run's attempt: 1, plus one for every recovery.
 */
export const runRoot = (
  { id, loop_id, name }: Pick<RunRecord, 'id' | 'loop_id' | 'name'>,
  attempt = 1,
): JsonObject => ({ id, loop_id: loop_id ?? null, name: name ?? null, attempt })

/** Returns the key, output and index of each completed step of the run itself, in order. */
export const outputs = (state: RunState): [key: string, output: unknown, index: number][] =>
  state.spec.steps.flatMap((step, index) => {
    const key = keyOf(step, index)
    const row = rowOf(state, key)
    return row?.status === 'completed' ? [[key, row.result, index]] : []
  })

/**
 * Returns the key (without the branch's prefix) and output of each completed step of a branch, in
 * order.
 */
export const outputsAt = (state: RunState, at: string): [key: string, output: unknown][] =>
  stepsAt(state, at).flatMap((step, index) => {
    const row = rowOf(state, keyBelow(at, step, index), at)
    return row?.status === 'completed' ? [[keyOf(step, index), row.result]] : []
  })
