/**
 * When answers settle a question, and what its outcome is then. Distinct people count, and only their answers of the
 * current review round.
 */
import { roleOf } from './check.ts'
import type { Interaction, Policy, Question, Response } from './schema.ts'

/** The round that answers are given in: 1, and one more for every request for changes. */
export const roundOf = ({ review_round = 1 }: Pick<Interaction, 'review_round'>): number =>
  review_round
/** Answers of the current round in the order they came. */
export const currentResponses = (
  interaction: Pick<Interaction, 'responses' | 'review_round'>,
): Response[] => interaction.responses.filter(({ attempt = 1 }) => attempt === roundOf(interaction))

/** Whether answers of these people satisfy a policy. */
export function satisfied(
  { type, threshold = 1 }: Policy,
  targets: readonly string[],
  responders: readonly string[],
): boolean {
  const distinct = new Set(responders)
  if (type === 'all_of') return targets.every((target) => distinct.has(target))
  return distinct.size >= (type === 'quorum' ? threshold : 1)
}

/**
 * The outcome of answers that satisfy a policy: of `any_of` the one value; else whether all confirmed, or, in every other
 * mode, who answered what.
 */
export function outcomeOf(
  { type }: Policy,
  question: Question | undefined,
  responses: readonly Pick<Response, 'responder_user_id' | 'value'>[],
): unknown {
  if (type === 'any_of') return responses[0]?.value
  if (question?.mode === 'confirm') return responses.every(({ value }) => value === true)
  return responses.map(({ responder_user_id, value }) => ({ responder_user_id, value }))
}

/** Who may review: the named people, else whoever created it. */
export const reviewersOf = ({
  resolution_policy: { review },
  created_by,
}: Pick<Interaction, 'resolution_policy' | 'created_by'>): readonly string[] =>
  !review
    ? []
    : review.reviewer_user_ids?.length
      ? review.reviewer_user_ids
      : created_by === undefined
        ? []
        : [created_by]

/** People among the targets who have not answered in this round: those who can have a link. A role has no single person who could own one. */
export function linkable(
  interaction: Pick<Interaction, 'target_user_ids' | 'responses' | 'review_round'>,
): string[] {
  const answered = new Set(
    currentResponses(interaction).map(({ responder_user_id }) => responder_user_id),
  )
  return interaction.target_user_ids.filter(
    (target) => roleOf(target) === undefined && !answered.has(target),
  )
}
