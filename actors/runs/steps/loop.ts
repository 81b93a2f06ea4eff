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
export function executeLoop(on: Draft, step: LoopStep): void {
  const key = current(on)?.key ?? ''
  if (step.config.loop_id !== undefined) {
    askLoop(on, step, key, step.config.loop_id)
    return
  }
  const child = workflowOf(on, step)
  if ('error' in child) {
    failStep(on, child, true)
    return
  }
  const waits = step.config.wait === true
  const run_id = startChild(on, child, waits, dueOf(on, step))
  if (!waits) completeStep(on, { run_id })
}

function askLoop(on: Draft, step: LoopStep, key: string, loop_id: string): void {
  const { record, engine } = on.state
  if (isDeepest(on)) {
    failStep(on, tooDeep, true)
    return
  }
  const roots = expressionScope(on)
  const { event, config } = step.config
  const due = dueOf(on, step)
  const wait: OpenWait = {
    kind: 'loop',
    step: key,
    id: on.cause.mint('wait'),
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
    ...initiativeOf(on),
  }
  suspend(
    on,
    wait,
    { loop_id, subject: loop_id },
    {
      inputs: { ...input.event },
      waiting_on: { kind: 'run', reason: `Requests a run of the loop ${loop_id}`, step_key: key },
    },
  )
  emit(on, 'loop.asked', {
    note: { to: { kind: 'loop', id: loop_id }, name: 'loop.ask', input } satisfies Tell as Note,
  })
}

function workflowOf(
  on: Draft,
  { config: { workflow_id = '', event, config } }: LoopStep,
): Child | RunFault {
  if (isDeepest(on)) return tooDeep
  const roots = expressionScope(on)
  const input = event ? (renderNative(event, roots) as JsonObject) : (on.state.record.input ?? {})
  return childOf(on, workflow_id, input, config ? (renderNative(config, roots) as JsonObject) : {})
}
