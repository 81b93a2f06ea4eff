/**
 * The command that starts a run. The gateway derives the run's id from the idempotency key, so two
 * starts with the same key reach the same actor. Without a key, a second start with the same id can
 * only be a redelivery of the first start.
 */

import type { StartExtra } from '../../../protocol/access/directory.ts'
import { actorOf } from '../../../protocol/actions/invocation.ts'
import type { Api } from '../../../protocol/api.ts'
import { bodyKey, type JsonObject, parseDuration, timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { refuse, refuseFields } from '../../../protocol/errors.ts'
import type { ChildStart } from '../../../protocol/internal.ts'
import { creditsOf, milliOf } from '../../../protocol/loops/credits.ts'
import { type RunRecord, shownRun } from '../../../protocol/loops/record.ts'
import { cut } from '../../../protocol/naming.ts'
import { ExpressionError } from '../../../protocol/rules/expressions/expression.ts'
import { renderText } from '../../../protocol/rules/expressions/template.ts'
import { applyDefaults } from '../../../protocol/rules/workflow-check/declared.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { WorkflowRun } from '../../../protocol/runs/schema.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import type { Cause, Decision } from '../../actor.ts'
import { current, type Draft, emit, newDraft } from '../draft.ts'
import { advance, pause } from '../engine/advance.ts'
import { runRoot } from '../engine/expression-scope.ts'
import { createState, type Engine, hasEnded, note, type RunState } from '../state.ts'

type Start = Omit<Input<Api['run.start']>, 'project'> &
  StartExtra &
  Partial<Pick<ChildStart, 'parent' | 'depth' | 'actor' | 'initiated_by' | 'source'>> &
  Pick<Engine, 'invoked'>

/**
 * Starts a run of a definition, or of the inline spec in the body, and executes it until it waits
 * or ends. The first step of a child is executed in a separate commit.
 */
export function start(
  state: RunState | null,
  input: Start,
  cause: Cause,
): Decision<RunEvent, WorkflowRun> {
  if (state) {
    const { id, status } = state.record
    return bodyKey(input) !== undefined && hasEnded(state)
      ? refuse('idempotency_key_conflict', { run_id: id, status })
      : { events: [], reply: workflowRun }
  }
  const spec = input.definition?.spec ?? input.spec
  if (!spec) return refuse('not_found')
  const inputs = applyDeclaredDefaults(spec.input, input.input, 'input')
  const config = applyDeclaredDefaults(spec.config, input.config, 'config')
  const faults = [
    ...('faults' in inputs ? inputs.faults : []),
    ...('faults' in config ? config.faults : []),
  ]
  if ('faults' in inputs || 'faults' in config) return refuseFields(...faults)

  const record = recordOf(input, spec, inputs.values, cause)
  const engine = engineOf(input, record, config.values ?? {}, cause)
  const run = spec.run_name
    ? { ...record, ...nameOf(spec, record, inputs.values ?? {}, engine.meta, engine.config) }
    : record
  const draft = draftNewRun(run, spec, engine, cause)
  beginRun(
    draft,
    {
      run_id: record.id,
      definition_id: record.definition_id,
      definition_version: record.definition_version,
      source: draft.state.engine.meta['source'],
    },
    input.parent !== undefined,
  )
  return { events: draft.events, reply: workflowRun, tells: draft.tells, next: draft.state }
}
const workflowRun = (state: RunState): WorkflowRun => shownRun(state.record) as WorkflowRun

/** Creates the draft of a new run. */
export function draftNewRun(run: RunRecord, spec: Spec, engine: Engine, cause: Cause): Draft {
  const first: RunEvent = { type: 'run.created', run, spec, private: note({ engine }) }
  const draft = newDraft(createState(null, first), cause)
  draft.events.push(first)
  return draft
}
/**
 * Begins a run.
 * @param later whether the first step is executed in a separate commit.
 */
export function beginRun(draft: Draft, payload: JsonObject, later: boolean): void {
  const wall = parseDuration(draft.state.spec.limits?.wall_clock_timeout ?? '0')
  const { at } = draft.cause
  const { loop_id, queue_reason } = draft.state.record
  emit(draft, 'run.started', {
    payload,
    run: {
      status: 'running',
      started_at: timestamp(at),
      ...(queue_reason && { queue_reason: null }),
      ...(wall &&
        loop_id !== undefined && { wall_clock_deadline_at: timestamp(Math.ceil(at + wall)) }),
    },
    ...((wall || draft.state.engine.held) && {
      note: {
        engine: {
          ...(wall && { wall_deadline: at + wall }),
          ...(draft.state.engine.held && { held: null }),
        },
      },
    }),
  })
  if (later) pause(draft, current(draft)?.key ?? '')
  else advance(draft)
}
/**
 * Returns the limits on spending and agent turns that the start or the definition of a run sets.
 */
export function allowances(
  { limits }: Spec,
  budget = milliOf(limits ?? {}),
): Pick<RunRecord, 'credit_budget' | 'max_agent_turns'> {
  return {
    ...(budget !== undefined && { credit_budget: creditsOf(budget) }),
    ...(limits?.max_agent_turns && { max_agent_turns: limits.max_agent_turns }),
  }
}

/**
 * Returns the values with the declared defaults, or their faults. Without a declaration, any values
 * are accepted.
 */
export const applyDeclaredDefaults = (
  rules: Spec['input'],
  values: JsonObject | undefined,
  path: string,
): ReturnType<typeof applyDefaults> | { values: JsonObject | undefined } =>
  rules ? applyDefaults(rules, values ?? {}, path) : { values }

function recordOf(
  input: Start,
  spec: Spec,
  values: JsonObject | undefined,
  cause: Cause,
): RunRecord {
  const { definition, external_id, parent_run_id } = input
  const workflow_type = input.workflow_type ?? spec.workflow_type
  return {
    id: cause.self.id,
    status: 'queued',
    definition_id: definition?.id ?? '',
    definition_version: definition?.version ?? 0,
    cancel_requested: false,
    queue: input.queue ?? spec.queue ?? 'default',
    initiated_by: input.initiated_by ?? initiator(cause),
    ...(workflow_type !== undefined && { workflow_type }),
    ...(external_id !== undefined && { external_id }),
    ...(parent_run_id !== undefined && { parent_run_id }),
    ...(values && { input: values }),
    ...allowances(spec),
    created_at: timestamp(cause.at),
    updated_at: timestamp(cause.at),
  }
}

/**
 * Returns the name of a run's initiator. For a person, this is the person's name, regardless of the
 * token used. For other principals, it is the name of the key or, without a named key, the name or
 * id of the principal.
 */
export const initiator = ({ credential, principal }: Cause): string =>
  (principal.type === 'user' ? principal.name : undefined) ??
  credential?.name ??
  principal.name ??
  principal.id

/**
 * Returns the initial engine of a run. `meta` contains the caller's metadata, which cannot override
 * the fields that the service sets.
 */
const engineOf = (input: Start, record: RunRecord, config: JsonObject, cause: Cause): Engine => ({
  meta: {
    ...input.metadata,
    run_id: record.id,
    ...(input.parent && { parent_step_key: input.parent.step }),
    source: input.source ?? {
      type: 'api',
      label: initiator(cause),
      ...(cause.credential && { id: cause.credential.id }),
    },
  },
  config,
  priority: input.priority ?? 0,
  ...(input.fairness_key !== undefined && { fairness_key: input.fairness_key }),
  position: 0,
  executed: 0,
  tries: 0,
  attempt: 1,
  actor: input.actor ?? actorOf(cause.principal),
  ...(input.invoked && { invoked: input.invoked }),
  ...(input.parent && {
    parent: { run_id: input.parent.run_id, waits: input.parent.waits },
    depth: input.depth ?? 1,
  }),
  ...(input.cause_depth !== undefined && { cause_depth: input.cause_depth }),
  ...(input.chain && { chain: input.chain }),
  ...(input.definitions &&
    Object.keys(input.definitions).length > 0 && { definitions: input.definitions }),
})

/**
 * Returns the name and description that the spec defines for its runs. A template that fails to
 * render is ignored, because a missing name must not prevent a start.
 * @param run the record of the run, which has no name yet.
 */
export function nameOf(
  { run_name }: Spec,
  run: RunRecord,
  input: JsonObject,
  meta: JsonObject,
  config: JsonObject,
): Pick<WorkflowRun, 'name' | 'description'> {
  if (!run_name) return {}
  const made = (template: string, length: number): string => {
    try {
      return cut(
        String(
          renderText(template, { input, event: input, config, meta, run: runRoot(run) }),
        ).trim(),
        length,
      )
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      return ''
    }
  }
  const [name, description] = [
    made(run_name.template, 160),
    made(run_name.description_template ?? '', 320),
  ]
  return { ...(name && { name }), ...(description && { description }) }
}
