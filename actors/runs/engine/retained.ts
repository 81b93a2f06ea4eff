/**
 * The limit on the step outputs that a run retains. All of them are in the run's state, which is
 * stored as one snapshot, so their sum must be bounded. Small outputs are not counted: their number
 * is bounded by the steps of the run and of its active branches.
 */
import { type JsonObject, sizeOf } from '../../../protocol/common.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import type { Draft } from '../draft.ts'
import { type RunState, rowOf } from '../state.ts'
import type { RunFault } from './ending.ts'

/** Maximum number of characters, as JSON, of an output that is not counted. */
const MAX_UNCOUNTED_LENGTH = 4096

/** Returns the size of an output as JSON in bytes, or 0 for an output that is not counted. */
export function countedSize(output: JsonObject): number {
  const text = JSON.stringify(output)
  return text.length <= MAX_UNCOUNTED_LENGTH ? 0 : sizeOf(text, 0)
}

/**
 * Returns the total size in bytes of the counted outputs that the run retains: the outputs of its
 * completed steps and of the steps of its active branches.
 */
function retained(state: RunState): number {
  let sum = 0
  for (const [key, size] of Object.entries(state.engine.sizes ?? {}))
    if (rowOf(state, key)?.status === 'completed') sum += size
  for (const { size = 0 } of state.branches ?? []) sum += size
  return sum
}

/**
 * Returns the fault of an output that does not fit within the limit, or undefined if it fits.
 * @param size bytes of the output; 0 if it is not counted.
 */
export function outputSizeFault({ state }: Draft, key: string, size: number): RunFault | undefined {
  const before = size === 0 ? 0 : retained(state)
  return before + size <= sizes.outputs
    ? undefined
    : {
        error_type: 'outputs_too_large',
        error:
          `The output of the step ${key} has ${size} bytes, and the outputs of earlier steps have ${before}; ` +
          `a run stores at most ${sizes.outputs} bytes of outputs`,
      }
}
