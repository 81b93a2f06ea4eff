/**
 * Timeout of a step. It limits each attempt of the step separately. One attempt of an action step
 * includes all attempts of its job.
 */
import { parseDuration } from '../../../protocol/common.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import type { Draft } from '../draft.ts'

/**
 * Default timeout of cleanup steps, so that a run in its cleanup ends even if no worker claims its
 * jobs.
 */
const CLEANUP = '10m'

/**
 * Returns the time at which a step times out if it begins to wait now, in Unix milliseconds.
 * Returns undefined if the step has no timeout.
 */
export function dueOf(draft: Draft, step: Step): number | undefined {
  const duration = parseDuration(
    step.timeout?.duration ?? (draft.state.engine.ending ? CLEANUP : '0'),
  )
  return duration ? draft.cause.at + duration : undefined
}
