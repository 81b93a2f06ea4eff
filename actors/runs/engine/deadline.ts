/** Computes the time at which a run needs to be woken. */
import { hasEnded, type RunState } from '../state.ts'

/**
 * Returns the time at which the run next needs `wake`, in Unix milliseconds, or undefined if it
 * needs none. A run that is held continues when its loop ends the hold. A run whose cancellation
 * was requested before its cleanup ends when its jobs, children and turns have ended. Such runs
 * need no timer other than `more_at`.
 */
export function deadline(state: RunState | null): number | undefined {
  if (!state || hasEnded(state)) return undefined
  const { wait, wall_deadline, more_at, ending, held } = state.engine
  if (held || (state.record.cancel_requested && !ending)) return more_at
  let first = Math.min(
    wait?.due ?? Infinity,
    ending ? Infinity : (wall_deadline ?? Infinity),
    more_at ?? Infinity,
  )
  for (const branch of state.branches ?? []) first = Math.min(first, branch.wait?.due ?? Infinity)
  return first === Infinity ? undefined : first
}
