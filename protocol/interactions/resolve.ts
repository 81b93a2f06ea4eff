/**
 * When responses settle an interaction, and its resulting outcome. Distinct people count, and only
 * their responses in the current review round.
 */
import { roleOf } from './check.ts'
import type { Interaction, Policy, Question, Response } from './schema.ts'

/** The current round: 1, plus one for every request for changes. */
export const roundOf = ({ review_round = 1 }: Pick<Interaction, 'review_round'>): number =>
  review_round
/** Responses of the current round in their order of arrival. */
export const currentResponses = (
  interaction: Pick<Interaction, 'responses' | 'review_round'>,
): Response[] => interaction.responses.filter(({ attempt = 1 }) => attempt === roundOf(interaction))

/** Whether responses of these people satisfy a policy. */
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
 * The outcome of responses that satisfy a policy. For `any_of` it is the single value. Otherwise it
 * is whether everyone confirmed, in the mode `confirm`, and the list of responders with their
 * values in all other modes.
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

/** The principals that may review: the listed reviewers, otherwise the creator. */
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

/**
 * The targets that can have a link: people who have not responded in this round. A role cannot have
 * one, because no single person could own its link.
 */
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
