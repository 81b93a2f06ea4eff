/**
 * Starts the run of a workflow for a step. The new run is a child of the step's run, is in the same
 * shard, and has the workflow definitions of the root run.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import type { ChildStart } from '../../../protocol/internal.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ChildRequest } from '../../../protocol/loops/events.ts'
import type { RunSource } from '../../../protocol/loops/run.ts'
import { applyDefaults } from '../../../protocol/rules/workflow-check/declared.ts'
import { current, type Draft, tellRun } from '../draft.ts'
import type { RunFault } from '../engine/ending.ts'
import { suspend } from '../engine/suspend.ts'
import type { OpenWait } from '../state.ts'

/**
 * Maximum `depth` of a run that a step starts. It limits the recursion of workflows that start
 * themselves. The depth of a run is the number of runs that led to it, as its ancestors or by
 * publishing an event that started a loop.
 */
const MAX_RUNS_ABOVE = 8
export const tooDeep: RunFault = {
  error_type: 'too_deep',
  error: `At most ${MAX_RUNS_ABOVE} runs may lead to a run, as its ancestors or through the events that started them`,
}
/** Whether the run is too deeply nested to start another run. */
export const isDeepest = ({ state: { engine } }: Draft): boolean =>
  (engine.depth ?? 0) >= MAX_RUNS_ABOVE

export type Child = Pick<ChildStart, 'definition' | 'input' | 'config'>

/**
 * Returns the definition and inputs of the child, or the reason why it cannot be started.
 * @param name key of the workflow in the definitions of the run: the reference that the step uses.
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
      error: `The workflow ${name} did not exist when the run started`,
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
 * Starts a child.
 * @param waits whether the step is suspended until the child has ended.
 * @returns the id of the child.
 */
export function startChild(
  draft: Draft,
  child: Child,
  waits: boolean,
  due: number | undefined,
  run_id = draft.cause.mint('run'),
): string {
  const { record, engine } = draft.state
  const key = current(draft)?.key ?? ''
  if (waits) {
    const wait: OpenWait = {
      kind: 'run',
      step: key,
      id: draft.cause.mint('wait'),
      run_id,
      ...(due !== undefined && { due }),
    }
    suspend(
      draft,
      wait,
      { run_id, subject: run_id },
      {
        inputs: { ...child.input },
        waiting_on: { kind: 'run', reason: `Waits for the run ${run_id}`, step_key: key },
      },
    )
  }
  tellRun(draft, run_id, 'child.start', {
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
    ...initiativeOf(draft),
  } satisfies ChildStart)
  return run_id
}

/**
 * Returns the initiator and the source of the run, which its children inherit. They do not depend
 * on the principal whose command resumed the run. The trigger is not inherited.
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
