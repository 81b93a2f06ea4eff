/**
 * The rules by which responses settle an interaction, and the resulting outcome. Only responses of
 * the current review round count, and several responses of one person count once.
 */
import { roleOf } from './check.ts'
import type { Interaction, Policy, Question, Response } from './schema.ts'

/** Returns the current review round: 1, plus one for every request for changes. */
export const roundOf = ({ review_round = 1 }: Pick<Interaction, 'review_round'>): number =>
  review_round
/** Returns the responses of the current round in their order of arrival. */
export const currentResponses = (
  interaction: Pick<Interaction, 'responses' | 'review_round'>,
): Response[] => interaction.responses.filter(({ attempt = 1 }) => attempt === roundOf(interaction))

/** Whether a policy is satisfied when these people have responded. */
export function isSatisfied(
  { type, threshold = 1 }: Policy,
  targets: readonly string[],
  responders: readonly string[],
): boolean {
  const distinct = new Set(responders)
  if (type === 'all_of') return targets.every((target) => distinct.has(target))
  return distinct.size >= (type === 'quorum' ? threshold : 1)
}

/**
 * Returns the outcome of responses that satisfy a policy. For `any_of`, it is the value of the
 * first response. For other policies, it depends on the mode of the question: in `confirm` mode, it
 * is true if everyone confirmed; in all other modes, it is the list of responders with their
 * values.
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

/**
 * Returns the principals that may review: the listed reviewers, or else the creator, if known.
 * Returns an empty list when the policy has no review.
 */
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
 * Whether no reviewer is left when these people have responded, because reviewers cannot review
 * their own answer. A role counts as a reviewer, even if it has one holder.
 */
export function leavesNoReviewer(
  interaction: Pick<Interaction, 'resolution_policy' | 'created_by'>,
  responders: readonly string[],
): boolean {
  const reviewers = reviewersOf(interaction)
  return reviewers.length > 0 && reviewers.every((reviewer) => responders.includes(reviewer))
}

/**
 * Returns the targets to which an answer link can be issued: principals that have not responded in
 * this round, and whose response leaves a reviewer. A role cannot get a link, because a link
 * belongs to one person.
 */
export function linkableTargets(
  interaction: Pick<
    Interaction,
    'target_user_ids' | 'responses' | 'review_round' | 'resolution_policy' | 'created_by'
  >,
): string[] {
  const answered = currentResponses(interaction).map(({ responder_user_id }) => responder_user_id)
  return interaction.target_user_ids.filter(
    (target) =>
      roleOf(target) === undefined &&
      !answered.includes(target) &&
      !leavesNoReviewer(interaction, [...answered, target]),
  )
}
