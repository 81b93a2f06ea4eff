/** Checks of requests that continue a failed run. */
import type { FieldError } from '../errors.ts'
import { checkBudget } from '../loops/credits.ts'
import { MAX_DURATION_MS } from '../rules/workflow-check/bounds.ts'

/** Returns the faults of a recovery that its schema cannot detect. */
export function checkRecovery({
  wall_clock_extend_seconds: extend = 0,
  ...budget
}: Parameters<typeof checkBudget>[0] & {
  readonly wall_clock_extend_seconds?: number
}): FieldError[] {
  return [
    ...checkBudget(budget),
    ...(extend * 1000 > MAX_DURATION_MS
      ? [
          {
            field: 'wall_clock_extend_seconds',
            message: 'is longer than ten years',
            actual: extend,
          },
        ]
      : []),
  ]
}
