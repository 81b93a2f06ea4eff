/**
 * The time a step may wait: for an action over all attempts of its job, for an event over one
 * attempt of the step.
 */
import { parseDuration } from '../../../protocol/common.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import type { Draft } from '../draft.ts'

/** A run that has only its cleanup left to do ends some time, whoever takes its jobs. */
const CLEANUP = '10m'

/**
 * When the step that begins to wait now will have timed out, in Unix milliseconds. Absent or 0:
 * never.
 */
export function dueOf(on: Draft, step: Step): number | undefined {
  const duration = parseDuration(step.timeout?.duration ?? (on.state.engine.ending ? CLEANUP : '0'))
  return duration ? on.cause.at + duration : undefined
}
