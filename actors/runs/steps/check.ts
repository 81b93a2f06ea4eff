/**
 * A step that evaluates assertions. All of them are evaluated, and an evaluation error counts as a
 * failure. Agents judge their assertions one after the other, each in a separate turn. Depending on
 * the step's configuration, a failed check fails the step, is only recorded, or is submitted to
 * people, who approve or reject it.
 */

import type { GateExtra } from '../../../protocol/access/directory.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { refuseAnswer } from '../../../protocol/interactions/check.ts'
import type { InteractionSettled } from '../../../protocol/internal.ts'
import { cut } from '../../../protocol/naming.ts'
import { cutText } from '../../../protocol/rules/cut-text.ts'
import { ExpressionError, predicate } from '../../../protocol/rules/expressions/expression.ts'
import { renderNative, renderText } from '../../../protocol/rules/expressions/template.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import type { Cause } from '../../actor.ts'
import { type AgentWait, current, type Draft, emit, progressOf } from '../draft.ts'
import type { RunFault } from '../engine/ending.ts'
import { expressionScope } from '../engine/expression-scope.ts'
import { catchExpressionFault, completeStep, failStep } from '../engine/outcome.ts'
import { stepsAt } from '../engine/places.ts'
import { stopAtLimit } from '../limits.ts'
import { aboutOf } from '../outbound/source-events.ts'
import { branchAt, type RunState, rowOf, type Wait } from '../state.ts'
import { askAgent, scopeOf } from './agent.ts'
import { ask } from './agent-request.ts'

/** A check step of a spec. */
export type CheckStep = Extract<Step, { kind: 'check' }>
type Assertion = CheckStep['config']['checks'][number]
/** The result of an assertion; `pass` is absent until its judge has answered. */
type Result = JsonObject & { readonly name: string; readonly pass?: boolean }

/** The output schema of a judge. */
export const VERDICT: JsonObject = {
  type: 'object',
  properties: { pass: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['pass', 'reason'],
  additionalProperties: false,
}
/** Maximum number of characters of a step's output in the prompt of a judge. */
const MAX_PROMPT_OUTPUT_LENGTH = 65_536

/** Evaluates the assertions, then concludes the check or requests the first judgment. */
export function executeCheck(draft: Draft, step: CheckStep): void {
  const roots = expressionScope(draft)
  goOn(
    draft,
    step,
    step.config.checks.map((assertion) => evaluated(assertion, roots)),
    0,
  )
}

function evaluated(
  { name, kind, expr = '', agent, evidence }: Assertion,
  roots: JsonObject,
): Result {
  const about = {
    name,
    kind,
    ...(kind === 'expr' ? { expr } : agent !== undefined && { agent }),
    ...(evidence && { evidence }),
  }
  if (kind === 'agent') return about
  try {
    return { ...about, pass: predicate(expr, roots) }
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    return { ...about, pass: false, error: error.message }
  }
}

/**
 * Requests the judgment of the next assertion that needs an agent. If no such assertion is left,
 * concludes the check.
 * @param from index of the first assertion that is considered.
 */
function goOn(draft: Draft, step: CheckStep, results: readonly Result[], from: number): void {
  const { on_fail = 'fail', checks } = step.config
  const index = checks.findIndex(({ kind }, i) => i >= from && kind === 'agent')
  const assertion = checks[index]
  if (!assertion) return void conclude(draft, step, results)
  // For the first judgment, the limits were already checked when the step began.
  if (from > 0 && stopAtLimit(draft)) return
  const { key = '', row } = current(draft) ?? {}
  try {
    const session = {
      scope: 'loop' as const,
      ref_id: scopeOf(draft.state),
      name: `check:${draft.state.record.id}:${key}:${index}:${row?.attempt ?? 1}`,
      title: `Check ${assertion.name}`,
    }
    askAgent(
      draft,
      step,
      {
        ...(assertion.agent !== undefined && { agent: assertion.agent }),
        instructions: questionOf(assertion, expressionScope(draft)),
        session,
      },
      index,
      { on_fail, checks: results },
    )
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    goOn(draft, step, having(results, index, { pass: false, error: error.message }), index + 1)
  }
}
const having = (results: readonly Result[], index: number, more: JsonObject): Result[] =>
  results.map((result, i) => (i === index ? { ...result, ...more } : result))

/**
 * Returns the prompt of a judge: the rendered `prompt` of the assertion, and the outputs of the
 * steps in `evidence`.
 */
function questionOf({ prompt = '', evidence = [] }: Assertion, roots: JsonObject): string {
  const steps = roots['steps'] as Readonly<Record<string, { readonly output?: unknown }>>
  const shown = evidence.map((id) => {
    const text = JSON.stringify(
      Object.hasOwn(steps, id) ? (steps[id]?.output ?? null) : null,
      null,
      2,
    )
    const isTruncated = text.length > MAX_PROMPT_OUTPUT_LENGTH
    const shown = isTruncated ? `${cutText(text, MAX_PROMPT_OUTPUT_LENGTH)}\n(truncated)` : text
    return `## ${id}\n\n${shown}`
  })
  return [
    String(renderText(prompt, roots)),
    ...(shown.length > 0 ? ['# Evidence: outputs of earlier steps', ...shown] : []),
    'Judge only this, and return pass (true or false) with a reason of one or two sentences.',
  ].join('\n\n')
}

/**
 * Records the answer of a judge. A missing verdict counts as a failure. If the gate cannot be
 * rendered, the attempt fails.
 */
export function recordVerdict(
  draft: Draft,
  step: CheckStep,
  { judges = 0, turn_id }: AgentWait,
  came: JsonObject | RunFault,
): void {
  const row = current(draft)?.row
  const results = (row?.verdict_detail?.['checks'] ?? []) as readonly Result[]
  const about = {
    ...(row?.agent_id !== undefined && { agent: row.agent_id }),
    agent_turn_id: turn_id,
  }
  const { pass, reason, error } = came as Readonly<Record<string, unknown>>
  const answered = having(
    results,
    judges,
    typeof pass === 'boolean'
      ? { ...about, pass, reason }
      : { ...about, pass: false, error: error ?? 'The judge returned no verdict' },
  )
  catchExpressionFault(draft, () => goOn(draft, step, answered, judges + 1))
}

function conclude(draft: Draft, step: CheckStep, results: readonly Result[]): void {
  const key = current(draft)?.key ?? ''
  const { on_fail = 'fail', gate } = step.config
  const failed = results.filter(({ pass }) => pass !== true).map(({ name }) => name)
  const verdict = failed.length === 0 ? ('pass' as const) : ('fail' as const)
  const verdict_detail = { verdict, on_fail, checks: results, failed }
  emit(draft, verdict === 'pass' ? 'check.passed' : 'check.failed', {
    step: key,
    payload: { step: key, ...verdict_detail },
    row: { verdict, verdict_detail },
    note: { about: aboutOf(draft.state) },
  })
  if (verdict === 'pass' || on_fail === 'continue') completeStep(draft, verdict_detail)
  else if (on_fail === 'fail' || !gate)
    failStep(
      draft,
      { error_type: 'check_failed', error: `Failed: ${failed.join(', ')}` },
      !step.retry,
      {},
      'check_failed',
    )
  else openGate(draft, step, gate, failed)
}

function openGate(
  draft: Draft,
  step: CheckStep,
  gate: NonNullable<CheckStep['config']['gate']>,
  failed: readonly string[],
): void {
  const roots = expressionScope(draft)
  const prompt = String(renderText(gate.prompt ?? '', roots)).trim()
  const title = cut(prompt || `Continue although ${failed.join(', ')} failed?`, 512)
  ask(draft, step, (renderNative(gate.targets, roots) as unknown[]).flat(), {
    kind: 'request_approval',
    resolution_policy: { type: 'any_of' },
    spec: { mode: 'confirm' },
    title,
    ...(prompt.length > title.length && { description: prompt }),
  })
}

/**
 * Returns the gate that a step waits for.
 * @param at key of the step's branch; undefined: the step is a step of the run itself.
 * @returns undefined if the step waits for something else.
 */
const gateOf = (state: RunState, at: string | undefined, wait: Wait) => {
  const { position } = at === undefined ? state.engine : (branchAt(state, at) ?? state.engine)
  return wait.kind === 'interaction' && stepsAt(state, at)[position]?.kind === 'check'
    ? { id: wait.interaction_id, row: rowOf(state, wait.step, at) }
    : undefined
}

/**
 * Refuses to end a wait by hand if the step waits for the gate of a check, and the principal could
 * not answer the gate.
 */
export function refuseGate(
  state: RunState,
  at: string | undefined,
  wait: Wait,
  responds: GateExtra['responds'],
  { principal }: Cause,
): Refusal | undefined {
  const gate = gateOf(state, at, wait)
  if (!gate) return undefined
  if (responds && isRefusal(responds)) return responds
  const targets = (gate.row?.inputs?.['target_user_ids'] ?? []) as readonly string[]
  return refuseAnswer(targets, principal.id, responds?.roles ?? [])
}

/**
 * Returns the verdict of a check whose gate a principal passes by hand, instead of an answer.
 * Returns undefined if the step does not wait for a gate.
 */
export function overriddenVerdict(draft: Draft, reason: string): JsonObject | undefined {
  const { wait } = progressOf(draft)
  const gate = wait && gateOf(draft.state, draft.at, wait)
  return (
    gate && {
      ...gate.row?.verdict_detail,
      overridden_by: draft.cause.principal.id,
      gate: { interaction_id: gate.id, status: 'cancelled', reason },
    }
  )
}

/**
 * Handles people's decision on a failed check: `true` completes the step; any other outcome fails
 * it permanently.
 */
export function settleGate(
  draft: Draft,
  { status, value, responder, interaction_id, comment, reason }: InteractionSettled,
): void {
  const detail = (current(draft)?.row?.verdict_detail ?? {}) as JsonObject
  const gate = {
    interaction_id,
    status,
    ...(status === 'completed' && { value }),
    ...(responder && { responder }),
    ...(comment !== undefined && { comment }),
    ...(reason !== undefined && { reason }),
  }
  const verdict_detail = {
    ...detail,
    ...(responder && value === true && { overridden_by: responder.user_id }),
    gate,
  }
  if (status === 'completed' && value === true)
    completeStep(draft, verdict_detail, { verdict_detail })
  else
    failStep(
      draft,
      {
        error_type: 'gate_rejected',
        error:
          status === 'completed'
            ? `Rejected by ${responder?.user_id ?? 'somebody'}`
            : `The approval was ${status}`,
      },
      true,
      { verdict_detail },
      'gate_rejected',
    )
}
