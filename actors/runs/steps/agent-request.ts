/**
 * Requests to people: the question, the wait for the answer, and the interaction, which is in the
 * shard of its run.
 */
import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import { interactionLimits } from '../../../protocol/interactions/schema.ts'
import type { InteractionOpening } from '../../../protocol/internal.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { current, type Draft, emit, tellInteraction } from '../draft.ts'
import { failStep } from '../engine/outcome.ts'
import { suspend } from '../engine/suspend.ts'
import { causeOf } from '../outbound/source-events.ts'
import type { OpenWait } from '../state.ts'
import { dueOf } from './timeout.ts'

/** The content of a request to people, without the fields that identify its run and step. */
export type InteractionQuestion = Omit<
  InteractionOpening,
  'run_id' | 'signal_name' | 'step' | 'depth' | 'chain'
>

/** Returns what is wrong with a rendered question; undefined if people can answer it. */
function faultOf(question: InteractionQuestion): string | undefined {
  const { length } = question.target_user_ids
  if (length === 0) return 'targets: must be ids of principals'
  if (length > interactionLimits.targets)
    return `targets: there are ${length}, but at most ${interactionLimits.targets} are allowed`
  const size = JSON.stringify(question).length
  return size > interactionLimits.question
    ? `the question has ${size} characters, but at most ${interactionLimits.question} are allowed`
    : undefined
}

/**
 * Opens an interaction, and waits for the answer. The step fails if there is no valid target, or if
 * the question exceeds a limit.
 * @param rendered the targets after their templates were rendered.
 */
export function ask(
  draft: Draft,
  step: Step,
  rendered: readonly unknown[],
  question: Omit<InteractionQuestion, 'target_user_ids'>,
): void {
  const key = current(draft)?.key ?? ''
  const targets = [
    ...new Set(rendered.filter((target) => typeof target === 'string' && target !== '')),
  ] as string[]
  const asked: InteractionQuestion = { ...question, target_user_ids: targets }
  const error = faultOf(asked)
  if (error !== undefined) {
    failStep(draft, { error_type: 'interaction_invalid', error }, true)
    return
  }
  const { kind: protocol, title, expires_at } = asked
  const interaction_id = draft.cause.mint('interaction')
  const due = dueOf(draft, step)
  const wait: OpenWait = {
    kind: 'interaction',
    step: key,
    id: draft.cause.mint('wait'),
    interaction_id,
    ...(due !== undefined && { due }),
  }
  const until = expires_at !== undefined && { expires_at }
  emit(draft, 'interaction.requested', {
    step: key,
    payload: { step: key, interaction_id, protocol, targets, title, ...until },
  })
  const ends = [due, expires_at && parseTimestamp(expires_at)].filter(
    (time) => typeof time === 'number',
  )
  const waiting_on = {
    kind: 'interaction' as const,
    reason: `Waits for an answer of ${targets.join(', ')}`,
    ...(ends.length > 0 && { until: timestamp(Math.min(...ends)) }),
    step_key: key,
    interaction_id,
  }
  suspend(
    draft,
    wait,
    { interaction_id, subject: interaction_id, protocol, targets, ...until },
    { inputs: { ...asked }, waiting_on },
  )
  tellInteraction(draft, interaction_id, 'interaction.open', {
    ...asked,
    run_id: draft.state.record.id,
    signal_name: `interaction.${key}`,
    step: key,
    ...causeOf(draft.state),
  } satisfies InteractionOpening)
}
