/** Answering an interaction, and reviewing its answers. */

import type { Api } from '../../protocol/api.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { checkValue, isNamed, refuseAnswer } from '../../protocol/interactions/check.ts'
import type { InteractionEvent } from '../../protocol/interactions/events.ts'
import {
  currentResponses,
  isSatisfied,
  leavesNoReviewer,
  outcomeOf,
  reviewersOf,
  roundOf,
} from '../../protocol/interactions/resolve.ts'
import type { ByLink, CallerRoles } from '../../protocol/interactions/rows.ts'
import {
  type Interaction,
  interactionLimits,
  type Response,
} from '../../protocol/interactions/schema.ts'
import type { Cause, Decision, Tell } from '../actor.ts'
import { refuseApproval } from './approval.ts'
import { conclude, recordReply } from './settle.ts'
import { type InteractionState, statusAt } from './state.ts'

type Respond = Input<Api['interaction.respond']> & CallerRoles & ByLink
type Answered = Decision<InteractionEvent, Interaction>

/** Refuses an answer or a review that the current status does not allow. */
function closed(
  state: InteractionState,
  wanted: 'pending' | 'in_review',
  at: number,
): Refusal | undefined {
  const status = statusAt(state, at)
  return status === wanted
    ? undefined
    : refuse('conflict', { status }, `The interaction is ${status}; it must be ${wanted}.`)
}

/**
 * Records the answer of a target. The answer that satisfies the policy completes the interaction or
 * submits it for review. While the interaction is pending, a repeat of the same answer is accepted
 * and changes nothing.
 */
export function respond(
  state: InteractionState | null,
  { value, comment, roles, executes = [], link }: Respond,
  cause: Cause,
): Answered {
  if (!state || state.deleted) return refuse('not_found')
  const { record } = state
  const { id: person } = cause.principal
  const unfit = state.approval && refuseApproval(state.approval, cause.principal, executes)
  if (unfit) return unfit
  const refused =
    refuseAnswer(record.target_user_ids, person, roles) ?? closed(state, 'pending', cause.at)
  if (refused) return refused
  const round = roundOf(record)
  if (link && link.round !== round)
    return refuse('conflict', { review_round: round }, 'The link was created for another round.')
  const before = currentResponses(record)
  const mine = before.find(({ responder_user_id }) => responder_user_id === person)
  if (mine)
    return sameValue(mine.value, value)
      ? { events: [], reply: record }
      : refuse(
          'conflict',
          { response_id: mine.id },
          'You have already answered; the first answer counts.',
        )
  if (leavesNoReviewer(record, [...before.map((one) => one.responder_user_id), person]))
    return refuse(
      'forbidden',
      undefined,
      'With this answer no reviewer would be left, because reviewers cannot review their own answer.',
    )
  const faults = checkValue(record.spec, value)
  if (faults.length > 0) return refuseFields(...faults)

  const at = timestamp(cause.at)
  const response: Response = {
    id: cause.mint('response'),
    interaction_id: record.id,
    response_kind: 'response',
    state: 'submitted',
    responder_user_id: person,
    value,
    ...(comment !== undefined && { comment }),
    ...(round > 1 && { attempt: round }),
    responded_at: at,
    created_at: at,
    updated_at: at,
  }
  const answered: InteractionEvent = { type: 'interaction.responded', id: record.id, response }
  const after: Interaction = { ...record, responses: [...record.responses, response] }
  const size = JSON.stringify(after).length
  if (size > interactionLimits.size)
    return refuse(
      'conflict',
      { limit: interactionLimits.size, actual: size },
      `With this answer the interaction would have ${size} characters, but at most ${interactionLimits.size} ` +
        `are allowed. Shorten the answer, or refer to large content instead of including it.`,
    )
  const consumerTells = tellOf(after, response)
  const responses = currentResponses(after)
  const { resolution_policy: policy, target_user_ids, spec } = record
  if (
    !isSatisfied(
      policy,
      target_user_ids,
      responses.map(({ responder_user_id }) => responder_user_id),
    )
  )
    return { events: [answered], tells: consumerTells, reply: recordReply }
  const responder = { user_id: person }
  if (policy.review) {
    const lifecycle = {
      at,
      status: 'in_review' as const,
      action: 'submitted_for_review' as const,
      actor_id: person,
      round,
    }
    return {
      events: [
        answered,
        {
          type: 'interaction.submitted',
          id: record.id,
          set: { status: 'in_review', submitted_at: at, responder },
          lifecycle,
        },
      ],
      tells: consumerTells,
      reply: recordReply,
    }
  }
  const { events, tells } = conclude(
    { ...state, record: after },
    {
      set: {
        status: 'completed',
        resolved_by: policy.type,
        responder,
        resolving_response_id: response.id,
      },
      outcome: { value: outcomeOf(policy, spec, responses) },
      lifecycle: { at, status: 'completed', action: 'resolved', actor_id: person },
    },
    cause,
  )
  return { events: [answered, ...events], tells: [...consumerTells, ...tells], reply: recordReply }
}

function tellOf(
  { id, consumer: { run } }: Interaction,
  { id: response_id, value, responder_user_id, comment, attempt }: Response,
): Tell[] {
  if (!run) return []
  const input = {
    interaction_id: id,
    response_id,
    response: value,
    responder: { user_id: responder_user_id },
    ...(comment !== undefined && { comment }),
    ...(attempt !== undefined && { round: attempt }),
  }
  return [{ to: { kind: 'run', id: run.run_id }, name: 'interaction.responded', input }]
}

/** Whether two values are equal as JSON, regardless of the order of properties. */
function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (
    typeof a !== 'object' ||
    typeof b !== 'object' ||
    a === null ||
    b === null ||
    Array.isArray(a) !== Array.isArray(b)
  )
    return false
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const names = Object.keys(left)
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && sameValue(left[name], right[name]))
  )
}

/**
 * Accepts the submitted answers, or requests changes in another round. A principal cannot review
 * its own answer.
 */
export function review(
  state: InteractionState | null,
  { action, comment, roles = [] }: Input<Api['interaction.review']> & Partial<CallerRoles>,
  cause: Cause,
): Answered {
  if (!state || state.deleted) return refuse('not_found')
  const { record } = state
  const { id: person } = cause.principal
  const submitted = currentResponses(record)
  if (!isNamed(reviewersOf(record), person, roles))
    return refuse('forbidden', undefined, 'Only reviewers of the interaction can review it.')
  const refused = closed(state, 'in_review', cause.at)
  if (refused) return refused
  if (submitted.some(({ responder_user_id }) => responder_user_id === person))
    return refuse('forbidden', undefined, 'Reviewers cannot review their own answer.')
  const at = timestamp(cause.at)
  const round = roundOf(record)
  const reviewer = { user_id: person }
  const said = comment !== undefined && { comment }
  if (action === 'request_changes') {
    if (round >= interactionLimits.rounds)
      return refuse(
        'conflict',
        { limit: interactionLimits.rounds },
        `This is round ${round}, the last one. Accept the answer, or cancel the interaction and create a new one.`,
      )
    return {
      events: [
        {
          type: 'interaction.reviewed',
          id: record.id,
          lifecycle: {
            at,
            status: 'pending',
            action: 'changes_requested',
            actor_id: person,
            round,
            ...said,
          },
          set: {
            status: 'pending',
            review_round: round + 1,
            reviewer,
            submitted_at: null,
            responder: null,
            review_feedback: comment ?? null,
          },
        },
      ],
      reply: recordReply,
    }
  }
  const last = submitted.at(-1)
  const accepted = {
    at,
    status: 'completed' as const,
    action: 'accepted' as const,
    actor_id: person,
    round,
    ...said,
  }
  const { events, tells } = conclude(
    state,
    {
      set: {
        status: 'completed',
        reviewer,
        resolved_by: 'review_accept',
        ...(last && { resolving_response_id: last.id }),
      },
      outcome: { value: outcomeOf(record.resolution_policy, record.spec, submitted) },
      lifecycle: accepted,
    },
    cause,
  )
  return { events, tells, reply: recordReply }
}
