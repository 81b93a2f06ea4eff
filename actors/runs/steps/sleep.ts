/** A sleep step: waits for a duration or until a time. Its output is an empty object. */
import { parseDuration, parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, type Draft } from '../draft.ts'
import { completeStep } from '../engine/outcome.ts'
import { suspend } from '../engine/suspend.ts'
import { dueOf } from './timeout.ts'

/** A sleep step of a spec. */
export type SleepStep = Extract<Step, { kind: 'sleep' }>

/**
 * Suspends the run until the time of the step, or until the step times out if that is earlier. If
 * the time of the step has already passed, completes the step immediately.
 */
export function executeSleep(draft: Draft, step: SleepStep): void {
  const { duration, until } = step.config
  const time =
    until !== undefined
      ? parseTimestamp(until)
      : draft.cause.at + (parseDuration(duration ?? '0') ?? 0)
  const end = Math.ceil(time ?? draft.cause.at)
  const timeout = Math.ceil(dueOf(draft, step) ?? Infinity)
  const key = current(draft)?.key ?? ''
  const at = timestamp(end)
  if (end <= draft.cause.at) completeStep(draft, {})
  else
    suspend(
      draft,
      {
        kind: 'timer',
        step: key,
        id: draft.cause.mint('wait'),
        due: Math.min(end, timeout),
        ...(timeout < end && { times_out: true }),
      },
      {},
      { waiting_on: { kind: 'timer', reason: `Sleeps until ${at}`, until: at, step_key: key } },
    )
}
