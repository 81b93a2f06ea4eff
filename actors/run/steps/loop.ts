/**
 * A step that runs a workflow as a child: a run of its own, in the slot of this one. It is done when the child was started, or
 * waits until the child has ended. A child that is waited for is stopped with its parent; any other goes its own way.
 */
import type { Open } from '../../../protocol/common.ts'
import { applyDefaults } from '../../../protocol/language/declared.ts'
import { renderNative } from '../../../protocol/language/template.ts'
import { own } from '../../../protocol/lookup.ts'
import type { Step } from '../../../protocol/spec.ts'
import type { ChildStart } from '../../../protocol/internal.ts'
import { current, tellRun, type Draft } from '../draft.ts'
import type { Fault } from '../ending.ts'
import { completeStep, failStep } from '../outcome.ts'
import { rootsOf } from '../roots.ts'
import type { OpenWait } from '../state.ts'
import { suspend } from '../suspend.ts'
import { dueOf } from './timeout.ts'

/** The loop step of the vocabulary. */
export type LoopStep = Extract<Step, { kind: 'loop' }>
/** Runs that may be above one: a workflow may start itself, but not without end. */
const MAX_RUNS_ABOVE = 8

/** Start a child. */
export function executeLoop(on: Draft, step: LoopStep): void {
  const { record, engine } = on.state
  const key = current(on)?.key ?? ''
  const child = childOf(on, step)
  if ('error' in child) {
    failStep(on, child, true)
    return
  }
  const run_id = on.cause.mint('run')
  const waits = step.config.wait === true
  const due = dueOf(on, step)
  if (waits) {
    const wait: OpenWait = { kind: 'run', step: key, id: on.cause.mint('wait'), run_id, ...(due !== undefined && { due }) }
    suspend(on, wait, { run_id, subject: run_id }, { inputs: { ...child.input }, waiting_on: { kind: 'run', reason: `Waits for the run ${run_id}`, step_key: key } })
  }
  tellRun(on, run_id, 'child.start', {
    ...child, parent: { run_id: record.id, waits, step: key }, depth: (engine.depth ?? 0) + 1, definitions: engine.definitions ?? {}, queue: record.queue, priority: engine.priority,
    ...(engine.fairness_key !== undefined && { fairness_key: engine.fairness_key }), ...(engine.actor && { actor: engine.actor }),
  } satisfies ChildStart)
  if (!waits) completeStep(on, { run_id })
}

function childOf(on: Draft, { config: { workflow_id = '', event, config } }: LoopStep): Pick<ChildStart, 'definition' | 'input' | 'config'> | Fault {
  const { engine, record } = on.state
  const definition = own(engine.definitions ?? {}, workflow_id)
  if (!definition) return { error_type: 'workflow_not_found', error: `There was no workflow ${workflow_id} when the run started` }
  if ((engine.depth ?? 0) >= MAX_RUNS_ABOVE) return { error_type: 'too_deep', error: `A run may have ${MAX_RUNS_ABOVE} runs above it` }
  const roots = rootsOf(on)
  const input = event ? (renderNative(event, roots) as Open) : (record.input ?? {})
  const given = config ? (renderNative(config, roots) as Open) : {}
  const [fault] = [applyDefaults(definition.spec.input, input, 'event'), applyDefaults(definition.spec.config, given, 'config')].flatMap((applied) => ('faults' in applied ? applied.faults : []))
  return fault ? { error_type: 'child_input_invalid', error: `${fault.field}: ${fault.message}` } : { definition, input, config: given }
}
