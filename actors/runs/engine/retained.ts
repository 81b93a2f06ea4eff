/**
 * What a run keeps of the outputs of its steps. All of it is in the run's state, which is stored as one snapshot, so the sum is
 * bounded. Outputs of a few characters are not counted: at most as many as steps, they cannot add up to much.
 */
import { sizeOf, type JsonObject } from '../../../protocol/common.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import type { Draft } from '../draft.ts'
import type { RunFault } from './ending.ts'
import { rowOf, type RunState } from '../state.ts'

/** Characters of JSON up to which an output is not counted. */
const UNCOUNTED = 4096

/** Bytes of an output as JSON; 0 for one that is not counted. */
export function countedSize(output: JsonObject): number {
  const text = JSON.stringify(output)
  return text.length <= UNCOUNTED ? 0 : sizeOf(text, 0)
}

/** Bytes of counted outputs that the run keeps: those of its completed steps and of branches under way. */
function retained(state: RunState): number {
  let sum = 0
  for (const [key, size] of Object.entries(state.engine.sizes ?? {}))
    if (rowOf(state, key)?.status === 'completed') sum += size
  for (const { size = 0 } of state.branches ?? []) sum += size
  return sum
}

/** Why an output cannot be kept beside those of the steps before; undefined: it can. */
export function tooMuch({ state }: Draft, key: string, size: number): RunFault | undefined {
  const before = size === 0 ? 0 : retained(state)
  return before + size <= sizes.outputs
    ? undefined
    : {
        error_type: 'outputs_too_large',
        error: `The output of the step ${key} has ${size} bytes, and those of the steps before it ${before}; a run keeps ${sizes.outputs} bytes of outputs`,
      }
}
