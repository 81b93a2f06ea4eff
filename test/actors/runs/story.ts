/** Helpers for tests of runs: steps, started runs, and commands that other actors send to a run. */

import { run } from '../../../actors/runs/run.ts'
import { isAsked, progressesOf, type RunState } from '../../../actors/runs/state.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { RunStep, WorkflowRun } from '../../../protocol/runs/schema.ts'
import type { Spec, Step } from '../../../protocol/workflows/spec.ts'
import { given, type Outcome, type Scene } from '../../support/given.ts'

export type Run = Scene<RunState>
export type After = Outcome<RunState>

export const action = (
  id: string,
  more: Partial<Step> & { parameters?: Record<string, unknown> } = {},
): Step => {
  const { parameters, ...rest } = more
  return {
    id,
    kind: 'action',
    config: { action_name: 'resize', ...(parameters && { parameters }) },
    ...rest,
  } as Step
}
export const sleep = (id: string, duration = '10s', more: Partial<Step> = {}): Step =>
  ({ id, kind: 'sleep', config: { duration }, ...more }) as Step
export const wait = (
  id: string,
  name = 'go',
  config: Record<string, unknown> = {},
  more: Partial<Step> = {},
): Step =>
  ({
    id,
    kind: 'wait_for_event',
    config: { event_type: `signal.${name}`, ...config },
    ...more,
  }) as Step

export const started = (
  steps: readonly Step[],
  spec: Partial<Spec> = {},
  input: Record<string, unknown> = {},
): After => given<RunState>(run).when('run.start', { spec: { steps, ...spec }, ...input })
/** Returns the waits that were sent to the `events` actor and are not yet confirmed. */
export const watching = (state: RunState | null): { readonly wait_id: string }[] =>
  state
    ? progressesOf(state).flatMap(([, { wait }]) =>
        wait && isAsked(wait) && 'id' in wait ? [{ wait_id: wait.id }] : [],
      )
    : []
/** Confirms all waits that were sent to the `events` actor. */
export const open = (scene: After): After =>
  watching(scene.state).reduce((before: After, wait) => before.when('event.watched', wait), scene)
export const settle = (
  scene: Run,
  job_id: string,
  outcome: 'completed' | 'failed' | 'cancelled',
  more: Record<string, unknown> = {},
): After =>
  scene.when('job.settled', { job_id, outcome, attempt: 1, worker_instance_id: 'w1', ...more })
export const failed = (steps: readonly Step[] = [action('a')], spec: Partial<Spec> = {}): After =>
  settle(started(steps, spec), 'job_1', 'failed', { error_type: 'Boom', error_message: 'no' })

export const record = (scene: Run): WorkflowRun => scene.state.record
export const step = (scene: Run, key: string): RunStep | undefined => scene.state.steps[key]
export const payload = (after: { events: readonly unknown[] }, type: string): unknown =>
  (after.events as readonly RunEvent[]).findLast((event) => event.type === type)?.payload
