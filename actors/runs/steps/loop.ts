/**
 * A step that starts another run. The run of a workflow is in the same shard. Depending on its
 * configuration, the step completes when that run has been started, or waits until the run has
 * ended. A child that the step waits for is stopped with its parent. Any other child is
 * independent.
 *
 * A run of a loop is in the shard of its loop, which may be a different shard. The step sends the
 * loop a request. The loop replies with the id of the new run, or with the reason why it did not
 * start one. The rules of the loop decide when the run begins.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { ChildRequest } from '../../../protocol/loops/events.ts'
import { renderNative } from '../../../protocol/rules/expressions/template.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import type { Tell } from '../../actor.ts'
import { current, type Draft, emit } from '../draft.ts'
import type { RunFault } from '../engine/ending.ts'
import { expressionScope } from '../engine/expression-scope.ts'
import { completeStep, failStep } from '../engine/outcome.ts'
import { suspend } from '../engine/suspend.ts'
import type { Note, OpenWait } from '../state.ts'
import { type Child, childOf, initiativeOf, isDeepest, startChild, tooDeep } from './child.ts'
import { dueOf } from './timeout.ts'

/** A loop step of a spec. */
export type LoopStep = Extract<Step, { kind: 'loop' }>

/** Starts a child run, or requests a run from a loop. */
export function executeLoop(draft: Draft, step: LoopStep): void {
  const key = current(draft)?.key ?? ''
  if (step.config.loop_id !== undefined) {
    askLoop(draft, step, key, step.config.loop_id)
    return
  }
  const child = workflowOf(draft, step)
  if ('error' in child) {
    failStep(draft, child, true)
    return
  }
  const waits = step.config.wait === true
  const run_id = startChild(draft, child, waits, dueOf(draft, step))
  if (!waits) completeStep(draft, { run_id })
}

function askLoop(draft: Draft, step: LoopStep, key: string, loop_id: string): void {
  const { record, engine } = draft.state
  if (isDeepest(draft)) {
    failStep(draft, tooDeep, true)
    return
  }
  const roots = expressionScope(draft)
  const { event, config } = step.config
  const due = dueOf(draft, step)
  const wait: OpenWait = {
    kind: 'loop',
    step: key,
    id: draft.cause.mint('wait'),
    loop_id,
    ...(due !== undefined && { due }),
  }
  const input: ChildRequest = {
    from: {
      run_id: record.id,
      step: key,
      wait_id: wait.id,
      ...(record.loop_id !== undefined && { loop_id: record.loop_id }),
    },
    event: event ? (renderNative(event, roots) as JsonObject) : (record.input ?? {}),
    config: config ? (renderNative(config, roots) as JsonObject) : {},
    depth: (engine.depth ?? 0) + 1,
    ...(engine.chain && { chain: engine.chain }),
    ...(engine.actor && { actor: engine.actor }),
    ...initiativeOf(draft),
  }
  suspend(
    draft,
    wait,
    { loop_id, subject: loop_id },
    {
      inputs: { ...input.event },
      waiting_on: { kind: 'run', reason: `Requests a run of the loop ${loop_id}`, step_key: key },
    },
  )
  emit(draft, 'loop.asked', {
    note: { to: { kind: 'loop', id: loop_id }, name: 'loop.ask', input } satisfies Tell as Note,
  })
}

function workflowOf(
  draft: Draft,
  { config: { workflow_id = '', event, config } }: LoopStep,
): Child | RunFault {
  if (isDeepest(draft)) return tooDeep
  const roots = expressionScope(draft)
  const input = event
    ? (renderNative(event, roots) as JsonObject)
    : (draft.state.record.input ?? {})
  return childOf(
    draft,
    workflow_id,
    input,
    config ? (renderNative(config, roots) as JsonObject) : {},
  )
}
