/**
 * A step that starts another run. That of a workflow lives in the slot of this one; the step is done when it was started, or waits
 * until it has ended. A child that is waited for is stopped with its parent; any other goes its own way.
 *
 * A run of a loop lives with its loop, perhaps in another shard: the loop is asked, and answers with the id of the run, or why
 * there is none. Its own rules decide when that run begins.
 */
import type { Open } from '../../../protocol/common.ts'
import { applyDefaults } from '../../../protocol/language/declared.ts'
import { renderNative } from '../../../protocol/language/template.ts'
import { own } from '../../../protocol/lookup.ts'
import type { Step } from '../../../protocol/spec.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { ChildStart, RunCommands } from '../../../protocol/internal.ts'
import type { ChildRequest } from '../../../protocol/loop/events.ts'
import type { RunSource } from '../../../protocol/loop/run.ts'
import type { Cause, Decision, Tell } from '../../actor.ts'
import { advance } from '../advance.ts'
import { current, draft, emit, nothing, silently, tellRun, type Draft } from '../draft.ts'
import type { Fault } from '../ending.ts'
import { completeStep, endWait, failStep, resumeStep } from '../outcome.ts'
import { waitingAt } from '../places.ts'
import { rootsOf } from '../roots.ts'
import { hasEnded, type Note, type OpenWait, type RunState } from '../state.ts'
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
  if (step.config.loop_id !== undefined) {
    askLoop(on, step, key, step.config.loop_id)
    return
  }
  const child = childOf(on, step)
  if ('error' in child) {
    failStep(on, child, true)
    return
  }
  const run_id = on.cause.mint('run')
  const waits = step.config.wait === true
  const due = dueOf(on, step)
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
    ...(engine.fairness_key !== undefined && { fairness_key: engine.fairness_key }),
    ...(engine.actor && { actor: engine.actor }),
    ...initiativeOf(on),
  } satisfies ChildStart)
  if (!waits) completeStep(on, { run_id })
}

function askLoop(on: Draft, step: LoopStep, key: string, loop_id: string): void {
  const { record, engine } = on.state
  if ((engine.depth ?? 0) >= MAX_RUNS_ABOVE) {
    failStep(on, tooDeep, true)
    return
  }
  const roots = rootsOf(on)
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
    event: event ? (renderNative(event, roots) as Open) : (record.input ?? {}),
    config: config ? (renderNative(config, roots) as Open) : {},
    depth: (engine.depth ?? 0) + 1,
    ...(engine.actor && { actor: engine.actor }),
    ...initiativeOf(on),
  }
  suspend(
    on,
    wait,
    { loop_id, subject: loop_id },
    {
      inputs: { ...input.event },
      waiting_on: { kind: 'run', reason: `Asks the loop ${loop_id} for a run`, step_key: key },
    },
  )
  emit(on, 'loop.asked', {
    note: { to: { kind: 'loop', id: loop_id }, name: 'loop.ask', input } satisfies Tell as Note,
  })
}

/** Who started the run, and from where: its children say the same, whoever wakes it meanwhile. The trigger is not theirs. */
function initiativeOf({
  state: { record, engine },
}: Draft): Pick<ChildRequest, 'initiated_by' | 'source'> {
  const { initiated_by } = record
  const { trigger_id: _, ...source } = (record.source ?? engine.meta['source'] ?? {}) as RunSource
  return {
    ...(initiated_by !== undefined && { initiated_by }),
    ...(source.type !== undefined && { source }),
  }
}

/** The loop has made a run, or says why not. */
export function childAnswered(
  state: RunState | null,
  { wait_id, run_id, fault }: RunCommands['child.answered']['input'],
  cause: Cause,
): Decision<RunEvent, undefined> {
  const found =
    state &&
    !hasEnded(state) &&
    waitingAt(state, (wait) => wait.kind === 'loop' && wait.id === wait_id)
  if (!state || !found || (state.record.cancel_requested && !state.engine.ending)) return nothing
  const on = draft(state, cause)
  on.at = found.at
  on.why = { reason: 'loop', ...(run_id !== undefined && { run_id }) }
  endWait(
    on,
    fault ? 'wait.closed' : 'wait.resumed',
    fault ? { reason: fault.error_type } : { run_id },
  )
  resumeStep(on)
  if (fault) failStep(on, fault)
  else completeStep(on, { run_id })
  advance(on)
  return silently(on)
}

const tooDeep: Fault = {
  error_type: 'too_deep',
  error: `A run may have ${MAX_RUNS_ABOVE} runs above it`,
}
function childOf(
  on: Draft,
  { config: { workflow_id = '', event, config } }: LoopStep,
): Pick<ChildStart, 'definition' | 'input' | 'config'> | Fault {
  const { engine, record } = on.state
  const definition = own(engine.definitions ?? {}, workflow_id)
  if (!definition)
    return {
      error_type: 'workflow_not_found',
      error: `There was no workflow ${workflow_id} when the run started`,
    }
  if ((engine.depth ?? 0) >= MAX_RUNS_ABOVE) return tooDeep
  const roots = rootsOf(on)
  const input = event ? (renderNative(event, roots) as Open) : (record.input ?? {})
  const given = config ? (renderNative(config, roots) as Open) : {}
  const [fault] = [
    applyDefaults(definition.spec.input, input, 'event'),
    applyDefaults(definition.spec.config, given, 'config'),
  ].flatMap((applied) => ('faults' in applied ? applied.faults : []))
  return fault
    ? { error_type: 'child_input_invalid', error: `${fault.field}: ${fault.message}` }
    : { definition, input, config: given }
}
