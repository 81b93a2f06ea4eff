/**
 * Starting the run of a workflow for a step: below the run of the step, in the same slot, with the
 * definitions of the whole family.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { ChildStart } from '../../../protocol/internal.ts'
import { applyDefaults } from '../../../protocol/rules/workflow-check/declared.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ChildRequest } from '../../../protocol/loops/events.ts'
import type { RunSource } from '../../../protocol/loops/run.ts'
import { current, tellRun, type Draft } from '../draft.ts'
import type { RunFault } from '../engine/ending.ts'
import type { OpenWait } from '../state.ts'
import { suspend } from '../engine/suspend.ts'

/** Runs that may be above one: a workflow may start itself, but not without end. */
const MAX_RUNS_ABOVE = 8
export const tooDeep: RunFault = {
  error_type: 'too_deep',
  error: `A run may have ${MAX_RUNS_ABOVE} runs above it`,
}
/** Whether a run of this depth may start no other. */
export const isDeepest = ({ state: { engine } }: Draft): boolean =>
  (engine.depth ?? 0) >= MAX_RUNS_ABOVE

export type Child = Pick<ChildStart, 'definition' | 'input' | 'config'>

/**
 * The child of a workflow, or why there is none.
 * @param name by which the definitions of the run know the workflow: what the step calls it.
 */
export function childOf(
  { state }: Draft,
  name: string,
  input: JsonObject,
  config: JsonObject,
): Child | RunFault {
  const definition = getOwn(state.engine.definitions ?? {}, name)
  if (!definition)
    return {
      error_type: 'workflow_not_found',
      error: `There was no workflow ${name} when the run started`,
    }
  const [fault] = [
    applyDefaults(definition.spec.input, input, 'event'),
    applyDefaults(definition.spec.config, config, 'config'),
  ].flatMap((applied) => ('faults' in applied ? applied.faults : []))
  return fault
    ? { error_type: 'child_input_invalid', error: `${fault.field}: ${fault.message}` }
    : { definition, input, config }
}

/**
 * Start a child. @param waits whether the step lasts until the child has ended; then it is
 * suspended. @returns the id of the child.
 */
export function startChild(
  on: Draft,
  child: Child,
  waits: boolean,
  due: number | undefined,
  run_id = on.cause.mint('run'),
): string {
  const { record, engine } = on.state
  const key = current(on)?.key ?? ''
  if (waits) {
    const wait: OpenWait = {
      kind: 'run',
      step: key,
      id: on.cause.mint('wait'),
      run_id,
      ...(due !== undefined && { due }),
    }
    suspend(
      on,
      wait,
      { run_id, subject: run_id },
      {
        inputs: { ...child.input },
        waiting_on: { kind: 'run', reason: `Waits for the run ${run_id}`, step_key: key },
      },
    )
  }
  tellRun(on, run_id, 'child.start', {
    ...child,
    parent: { run_id: record.id, waits, step: key },
    depth: (engine.depth ?? 0) + 1,
    definitions: engine.definitions ?? {},
    queue: record.queue,
    priority: engine.priority,
    ...(engine.cause_depth !== undefined && { cause_depth: engine.cause_depth }),
    ...(engine.chain && { chain: engine.chain }),
    ...(engine.fairness_key !== undefined && { fairness_key: engine.fairness_key }),
    ...(engine.actor && { actor: engine.actor }),
    ...initiativeOf(on),
  } satisfies ChildStart)
  return run_id
}

/**
 * Who started the run, and from where: its children say the same, whoever wakes it meanwhile. The
 * trigger is not theirs.
 */
export function initiativeOf({
  state: { record, engine },
}: Draft): Pick<ChildRequest, 'initiated_by' | 'source'> {
  const { initiated_by } = record
  const { trigger_id: _, ...source } = (record.source ?? engine.meta['source'] ?? {}) as RunSource
  return {
    ...(initiated_by !== undefined && { initiated_by }),
    ...(source.type !== undefined && { source }),
  }
}
