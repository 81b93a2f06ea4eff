/** Traverses the steps of a workflow, with their exact paths. */
import type { Step } from '../../workflows/steps.ts'
import { below } from './path.ts'

/**
 * Collects the results of `find` for the steps of a list. A step that contains steps is replaced by
 * those steps.
 * @param path path of the list of steps.
 * @param find receives a step and the path of its config.
 */
export const placesIn = <T>(
  steps: readonly Step[],
  path: string,
  find: (step: Step, at: string) => readonly T[],
): T[] =>
  steps.flatMap((step, index) => {
    const at = below(below(path, index), 'config')
    if (step.kind === 'for_each') return placesIn(step.config.steps, below(at, 'steps'), find)
    return step.kind === 'parallel'
      ? step.config.branches.flatMap((branch, i) =>
          placesIn(branch.steps, below(below(below(at, 'branches'), i), 'steps'), find),
        )
      : find(step, at)
  })
