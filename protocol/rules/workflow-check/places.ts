/** Traverses the steps of a workflow, with their exact paths. */
import type { Step } from '../../workflows/steps.ts'
import { below } from './path.ts'

/**
 * Collects the results of `find` for the steps of a list. A step that contains steps is replaced by
 * those steps.
 * @param path path of the list of steps.
 * @param find receives a step, and a function that returns the path of its config.
 */
export function placesIn<T>(
  steps: readonly Step[],
  path: string,
  find: (step: Step, at: () => string) => readonly T[],
): T[] {
  // Each start of a run traverses its steps several times, and `flatMap` is slow for short lists.
  const found: T[] = []
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i] as Step
    const at = () => below(below(path, i), 'config')
    if (step.kind === 'for_each')
      found.push(...placesIn(step.config.steps, below(at(), 'steps'), find))
    else if (step.kind !== 'parallel') found.push(...find(step, at))
    else
      for (const [branch, { steps }] of step.config.branches.entries())
        found.push(...placesIn(steps, below(below(below(at(), 'branches'), branch), 'steps'), find))
  }
  return found
}
