/** What expressions and templates of a run can see. */
import type { Open } from '../../protocol/common.ts'
import { keyOf, rowOf, type RunState } from './state.ts'

/**
 * The roots: `input` and `event` (the same), `config`, `meta`, and `steps` by key and by index. Only completed steps are
 * there: a skipped one is as unknown as one that is still to come.
 */
export function rootsOf(state: RunState): Open {
  const { record, engine } = state
  const input = record.input ?? {}
  const steps = outputs(state).flatMap(([key, output, index]) => [[key, { output }], [String(index), { output }]] as const)
  return { input, event: input, config: engine.config, meta: engine.meta, steps: Object.fromEntries(steps) }
}

/** Key, output and index of the completed steps, in order. */
export const outputs = (state: RunState): [key: string, output: unknown, index: number][] =>
  state.spec.steps.flatMap((step, index) => {
    const key = keyOf(step, index)
    const row = rowOf(state, key)
    return row?.status === 'completed' ? [[key, row.result, index]] : []
  })
