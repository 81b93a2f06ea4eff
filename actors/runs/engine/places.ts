/** Where in its spec a run stands: the lists of steps that its places take, and which place waits for what. */
import type { JsonObject } from '../../../protocol/common.ts'
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'
import { branchAt, keyOf, rowOf, type Place, type RunState, type Wait } from '../state.ts'

/** The step of the run itself. */
export const mainStep = ({ spec, engine }: RunState): Step | undefined =>
  spec.steps[engine.position]

/** The steps that a place takes. */
export function stepsAt(state: RunState, at: string | undefined): readonly Step[] {
  if (at === undefined) return state.engine.ending ? (state.spec.cleanup ?? []) : state.spec.steps
  return bodyOf(state, at)?.steps ?? []
}
/** What a branch consists of: its steps and what it gives. */
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

/** The place whose wait satisfies a condition, first the run itself, then branches in the order in which they began. */
export function waitingAt(
  state: RunState,
  holds: (wait: Wait) => boolean,
): { readonly at: string | undefined; readonly place: Place } | undefined {
  const { engine, branches } = state
  if (engine.wait && holds(engine.wait)) return { at: undefined, place: engine }
  const branch = branches?.find(({ wait }) => wait && holds(wait))
  return branch && { at: branch.key, place: branch }
}
/** Whether a wait is for a worker, a child run or a turn that was opened: for something that ends by itself when it is asked to. */
export const isWork = (wait: Wait): boolean =>
  wait.kind === 'worker' ||
  wait.kind === 'run' ||
  (wait.kind === 'agent' && wait.session_id !== undefined)
/** Whether some place waits for such a thing. */
export const holdsWork = (state: RunState): boolean => waitingAt(state, isWork) !== undefined

/** What the worker that takes a job needs to know: read when the job is delivered. Null when the run no longer wants it. */
export function jobSpec(
  state: RunState | null,
  { job_id }: { job_id: string },
): { parameters: JsonObject; action_name: string } | null {
  const found =
    state && waitingAt(state, (wait) => wait.kind === 'worker' && wait.job_id === job_id)
  const wait = found?.place.wait
  if (!state || !found || !wait) return null
  const step = stepsAt(state, found.at)[found.place.position]
  return step?.kind === 'action'
    ? specOf(step, rowOf(state, wait.step, found.at)?.inputs ?? {})
    : null
}
/** What a worker gets of a job, and what its size is measured of. */
export const specOf = (
  { config: { action_name } }: Extract<Step, { kind: 'action' }>,
  parameters: JsonObject,
): { parameters: JsonObject; action_name: string } => ({ parameters, action_name })
/** The key of the step at an index of a list, below that of its branch. */
export const keyBelow = (at: string | undefined, step: Step, index: number): string =>
  at === undefined ? keyOf(step, index) : `${at}.${keyOf(step, index)}`
/**
 * What keys below a step of the run begin with. No id of the list begins with it, and no prefix of another step does: a dot is
 * followed by as many tildes as it takes, and then by the name of a branch or the index of an item, which never begin with one.
 */
export function prefixBelow(steps: readonly Step[], key: string): string {
  let prefix = `${key}.`
  while (steps.some((step, index) => keyOf(step, index).startsWith(prefix))) prefix += '~'
  return prefix
}
/** What keys of the cleanup begin with. Only where a step `cleanup` has branches could their keys be the same. */
export function cleanupPrefix({ steps, cleanup = [] }: Spec): string {
  const prefix = prefixBelow(steps, 'cleanup')
  const branches = steps.some(
    (step, index) =>
      (step.kind === 'parallel' || step.kind === 'for_each') && keyOf(step, index) === 'cleanup',
  )
  return branches && cleanup.some(({ id = '' }) => id.includes('.')) ? `${prefix}~` : prefix
}
