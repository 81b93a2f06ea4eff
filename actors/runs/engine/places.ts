/**
 * Looks up the steps, waits and keys of a run and its branches. No function in this file changes
 * the state.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'
import { branchAt, keyOf, type Progress, type RunState, rowOf, type Wait } from '../state.ts'

/**
 * Returns the current step of the run itself, or undefined after the last step. The result is valid
 * only outside of the cleanup.
 */
export const mainStep = ({ spec, engine }: RunState): Step | undefined =>
  spec.steps[engine.position]

/**
 * Returns the steps of a branch or, without a branch, the steps or cleanup steps of the run itself.
 */
export function stepsAt(state: RunState, at: string | undefined): readonly Step[] {
  if (at === undefined) return state.engine.ending ? (state.spec.cleanup ?? []) : state.spec.steps
  return bodyOf(state, at)?.steps ?? []
}
/**
 * Returns the body of a branch of the current step: its steps and its `output`. All items of a
 * `for_each` have the same body. Returns undefined for a branch of a `parallel` step that is not
 * active, and for any other step.
 */
export function bodyOf(
  state: RunState,
  at: string,
): { readonly steps: readonly Step[]; readonly output?: JsonObject } | undefined {
  const step = mainStep(state)
  if (step?.kind === 'for_each') return step.config
  return step?.kind === 'parallel'
    ? step.config.branches[branchAt(state, at)?.index ?? -1]
    : undefined
}

/**
 * Returns the run itself, or its first branch, whose wait satisfies a condition; undefined if no
 * wait satisfies it. The run is checked first, then the branches in the order in which they began.
 */
export function waitingAt(
  state: RunState,
  holds: (wait: Wait) => boolean,
): { readonly at: string | undefined; readonly progress: Progress } | undefined {
  const { engine, branches } = state
  if (engine.wait && holds(engine.wait)) return { at: undefined, progress: engine }
  const branch = branches?.find(({ wait }) => wait && holds(wait))
  return branch && { at: branch.key, progress: branch }
}
/**
 * Whether a wait is for a job, a child run or an open turn. Each of these ends on its own after a
 * stop request.
 */
export const isWork = (wait: Wait): boolean =>
  wait.kind === 'worker' ||
  wait.kind === 'run' ||
  (wait.kind === 'agent' && wait.session_id !== undefined)
/**
 * Whether the run ends as cancelled when its work has ended. A run in its cleanup continues the
 * cleanup instead.
 */
export const isCancelling = ({ record, engine }: RunState): boolean =>
  record.cancel_requested && !engine.ending
/** Whether the run itself or a branch waits for work (`isWork`). */
export const holdsWork = (state: RunState): boolean => waitingAt(state, isWork) !== undefined

/**
 * Returns the content of a job for its worker, read when the job is delivered. Returns null if the
 * run no longer waits for the job.
 */
export function jobSpec(
  state: RunState | null,
  { job_id }: { job_id: string },
): { parameters: JsonObject; action_name: string } | null {
  const found =
    state && waitingAt(state, (wait) => wait.kind === 'worker' && wait.job_id === job_id)
  const wait = found?.progress.wait
  if (!state || !found || !wait) return null
  const step = stepsAt(state, found.at)[found.progress.position]
  return step?.kind === 'action'
    ? specOf(step, rowOf(state, wait.step, found.at)?.inputs ?? {})
    : null
}
/** Returns the content of a job for its worker. The size limit of jobs applies to this object. */
export const specOf = (
  { config: { action_name } }: Extract<Step, { kind: 'action' }>,
  parameters: JsonObject,
): { parameters: JsonObject; action_name: string } => ({ parameters, action_name })
/**
 * Returns the key of a step. If the step is in a branch, the key begins with the key of the branch.
 * @param index index of the step among the steps of the run or of the branch.
 */
export const keyBelow = (at: string | undefined, step: Step, index: number): string =>
  at === undefined ? keyOf(step, index) : `${at}.${keyOf(step, index)}`
/**
 * Returns the prefix of the keys of a step's branches: the step's key and a dot, followed by as
 * many tildes as necessary so that neither the key of a step of the run nor the prefix of another
 * step begins with it. In a branch's key, the prefix is followed by the name of the branch or the
 * index of the item, which never begins with a tilde.
 */
export function prefixBelow(steps: readonly Step[], key: string): string {
  let prefix = `${key}.`
  while (steps.some((step, index) => keyOf(step, index).startsWith(prefix))) prefix += '~'
  return prefix
}
/**
 * Returns the prefix of the keys of cleanup steps. The prefix has an additional tilde if these keys
 * could otherwise equal keys in the branches of a step with the key `cleanup`.
 */
export function cleanupPrefix({ steps, cleanup = [] }: Spec): string {
  const prefix = prefixBelow(steps, 'cleanup')
  const branches = steps.some(
    (step, index) =>
      (step.kind === 'parallel' || step.kind === 'for_each') && keyOf(step, index) === 'cleanup',
  )
  return branches && cleanup.some(({ id = '' }) => id.includes('.')) ? `${prefix}~` : prefix
}
