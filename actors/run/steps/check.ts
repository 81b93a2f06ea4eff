/**
 * A step that asserts. Every assertion is evaluated, and one that fails to evaluate has failed. What failed fails the run, is
 * only noted, or is put before people: they let it pass, or end the run.
 */
import type { Open } from '../../../protocol/common.ts'
import { ExpressionError, predicate } from '../../../protocol/language/expression.ts'
import { renderNative, renderText } from '../../../protocol/language/template.ts'
import type { InteractionSettled } from '../../../protocol/internal.ts'
import type { Step } from '../../../protocol/spec.ts'
import { current, emit, type Draft } from '../draft.ts'
import { completeStep, failStep } from '../outcome.ts'
import { rootsOf } from '../roots.ts'
import { aboutOf } from '../telling.ts'
import { ask } from './asking.ts'

/** The check step of the vocabulary. */
export type CheckStep = Extract<Step, { kind: 'check' }>
type Assertion = CheckStep['config']['checks'][number]

/** Assert, and go on, fail or ask. */
export function executeCheck(on: Draft, step: CheckStep): void {
  const key = current(on)?.key ?? ''
  const { on_fail = 'fail', checks, gate } = step.config
  const roots = rootsOf(on)
  const results = checks.map((assertion) => judge(assertion, roots))
  const failed = results.filter(({ pass }) => pass !== true).map(({ name }) => name)
  const verdict = failed.length === 0 ? 'pass' as const : 'fail' as const
  const verdict_detail = { verdict, on_fail, checks: results, failed }
  emit(on, verdict === 'pass' ? 'check.passed' : 'check.failed', { step: key, payload: { step: key, ...verdict_detail }, row: { verdict, verdict_detail }, note: { about: aboutOf(on.state) } })
  if (verdict === 'pass' || on_fail === 'continue') completeStep(on, verdict_detail)
  else if (on_fail === 'fail' || !gate) failStep(on, { error_type: 'check_failed', error: `Failed: ${failed.join(', ')}` }, !step.retry, {}, 'check_failed')
  else openGate(on, step, gate, failed)
}

function judge({ name, kind, expr = '', evidence }: Assertion, roots: Open): Open & { name: string; pass: boolean } {
  const about = { name, kind, expr, ...(evidence && { evidence }) }
  try {
    return { ...about, pass: predicate(expr, roots) }
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    return { ...about, pass: false, error: error.message }
  }
}

function openGate(on: Draft, step: CheckStep, gate: NonNullable<CheckStep['config']['gate']>, failed: readonly string[]): void {
  const roots = rootsOf(on)
  const prompt = gate.prompt === undefined ? undefined : String(renderText(gate.prompt, roots))
  ask(on, step, (renderNative(gate.targets, roots) as unknown[]).flat(), {
    kind: 'request_approval', resolution_policy: { type: 'any_of' }, spec: { mode: 'confirm' },
    title: (prompt ?? `Go on although ${failed.join(', ')} failed?`).slice(0, 512), ...(prompt !== undefined && prompt.length > 512 && { description: prompt }),
  })
}

/** People have decided about what failed: `true` lets it pass, everything else ends the run. */
export function settleGate(on: Draft, { status, value, responder, interaction_id, comment, reason }: InteractionSettled): void {
  const detail = (current(on)?.row?.verdict_detail ?? {}) as Open
  const gate = { interaction_id, status, ...(status === 'completed' && { value }), ...(responder && { responder }), ...(comment !== undefined && { comment }), ...(reason !== undefined && { reason }) }
  const verdict_detail = { ...detail, ...(responder && value === true && { overridden_by: responder.user_id }), gate }
  if (status === 'completed' && value === true) completeStep(on, verdict_detail, { verdict_detail })
  else failStep(on, { error_type: 'gate_rejected', error: status === 'completed' ? `Rejected by ${responder?.user_id ?? 'somebody'}` : `The approval was ${status}` }, true, { verdict_detail }, 'gate_rejected')
}
