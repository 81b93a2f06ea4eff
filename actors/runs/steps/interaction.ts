/**
 * A step that requests an answer from people. The interaction is in the shard of its run, so the
 * question and the wait of the run are committed together. The answer and the next step are also
 * one commit. An expired or cancelled interaction fails or completes the step, depending on the
 * step's configuration.
 */
import {
  type JsonObject,
  parseDuration,
  parseTimestamp,
  timestamp,
} from '../../../protocol/common.ts'
import type { FieldError } from '../../../protocol/errors.ts'
import { checkPolicy, checkQuestion } from '../../../protocol/interactions/check.ts'
import type { Policy, Question } from '../../../protocol/interactions/schema.ts'
import type { InteractionSettled } from '../../../protocol/internal.ts'
import { cut } from '../../../protocol/naming.ts'
import type { Roots } from '../../../protocol/rules/expressions/expression.ts'
import { renderNative, renderText } from '../../../protocol/rules/expressions/template.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import type { Draft } from '../draft.ts'
import type { RunFault } from '../engine/ending.ts'
import { expressionScope } from '../engine/expression-scope.ts'
import { completeStep, failStep } from '../engine/outcome.ts'
import { ask, type InteractionQuestion } from './agent-request.ts'

/** An interaction step of a spec. */
export type InteractionStep = Extract<Step, { kind: 'interaction' }>

/** Opens the interaction, and waits for the answer. */
export function executeInteraction(draft: Draft, step: InteractionStep): void {
  const asked = render(draft, step)
  if ('error' in asked) {
    failStep(draft, asked, true)
    return
  }
  const { target_user_ids: targets, expires_at } = asked
  if (expires_at !== undefined && (parseTimestamp(expires_at) ?? 0) <= draft.cause.at) {
    finish(draft, step, { status: 'expired' })
    return
  }
  ask(draft, step, targets, asked)
}

/** Renders the templates of the question. Returns a fault if the result is invalid. */
function render(draft: Draft, { name, config }: InteractionStep): InteractionQuestion | RunFault {
  const roots = expressionScope(draft)
  const text = (source: string | undefined): string | undefined =>
    source === undefined ? undefined : String(renderText(source, roots))
  const targets = idsOf(config.targets, roots)
  const declared: Policy =
    typeof config.resolution_policy === 'object'
      ? config.resolution_policy
      : { type: config.resolution_policy ?? 'any_of' }
  const reviewers = declared.review && idsOf(declared.review.reviewer_user_ids ?? [], roots)
  const policy: Policy = reviewers
    ? { ...declared, review: { ...declared.review, reviewer_user_ids: reviewers.ids } }
    : declared
  const spec = config.spec && (renderText(config.spec, roots) as Question)
  const prompt = text(config.prompt)
  const title =
    cut((text(config.title) ?? name ?? prompt ?? '').trim(), 512) || titles[config.protocol]
  const description = text(config.description) ?? (title === prompt ? undefined : prompt)
  const [fault] = [
    ...notIds(targets, 'targets'),
    ...(reviewers ? notIds(reviewers, 'resolution_policy.review.reviewer_user_ids') : []),
    ...checkPolicy(policy, targets.ids, 'resolution_policy', 'targets'),
    ...(spec ? checkQuestion(spec, config.protocol, 'spec') : []),
  ]
  if (fault) return { error_type: 'interaction_invalid', error: `${fault.field}: ${fault.message}` }
  const lasts = parseDuration(config.expires_in ?? '0')
  const ends =
    config.expires_at === undefined
      ? lasts
        ? Math.ceil(draft.cause.at + lasts)
        : undefined
      : parseTimestamp(config.expires_at)
  return {
    kind: config.protocol,
    title,
    target_user_ids: targets.ids,
    resolution_policy: policy,
    ...(description !== undefined && { description }),
    ...(spec && { spec }),
    ...(config.context && { context: renderNative(config.context, roots) as JsonObject }),
    ...(ends !== undefined && { expires_at: timestamp(ends) }),
  }
}
/**
 * Returns the principal ids that result from a list of ids and templates, without duplicates.
 * `whole`: whether every rendered entry is a non-empty string.
 */
function idsOf(
  list: readonly string[],
  roots: Roots,
): { readonly ids: string[]; readonly whole: boolean } {
  const rendered = new Set((renderNative(list, roots) as unknown[]).flat())
  const ids = [...rendered].filter((id): id is string => typeof id === 'string' && id !== '')
  return { ids, whole: ids.length === rendered.size }
}
const notIds = ({ ids, whole }: ReturnType<typeof idsOf>, field: string): FieldError[] =>
  ids.length > 0 && whole ? [] : [{ field, message: 'must be ids of principals' }]
const titles: Readonly<Record<InteractionStep['config']['protocol'], string>> = {
  request_information: 'A question',
  request_approval: 'An approval',
  request_review: 'A review',
  assign_work: 'Some work',
}

/**
 * Ends the step with the outcome of its interaction: an answer, or the configured result of expiry
 * or cancellation.
 */
export function finish(
  draft: Draft,
  { config }: InteractionStep,
  ended: Omit<InteractionSettled, 'interaction_id' | 'signal_name'> & {
    readonly interaction_id?: string
  },
): void {
  const { status, reason } = ended
  const fails =
    status === 'expired'
      ? (config.on_expiry ?? 'fail') === 'fail'
      : status === 'cancelled' && config.on_cancel === 'fail'
  if (!fails) completeStep(draft, outputOf(ended))
  else if (status === 'expired')
    failStep(draft, { error_type: 'interaction_expired', error: 'No answer arrived in time' })
  else
    failStep(draft, {
      error_type: 'interaction_cancelled',
      error:
        reason === undefined
          ? 'The interaction was cancelled'
          : `The interaction was cancelled: ${reason}`,
    })
}

/** Returns the output of an interaction that has ended. */
export function outputOf({
  interaction_id,
  status,
  value,
  responder,
  comment,
  reason,
}: Parameters<typeof finish>[2]): JsonObject {
  if (status === 'cancelled') return { status, ...(reason !== undefined && { reason }) }
  return {
    ...(interaction_id !== undefined && { interaction_id }),
    status,
    ...(status === 'completed' && { value }),
    ...(responder && { responder }),
    ...(comment !== undefined && { comment }),
  }
}
