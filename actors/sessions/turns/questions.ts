/**
 * Questions to people from within a turn, asked through the ask tool or because an action is
 * destructive. A question is an interaction in the session's shard, so the question and its waiting
 * turn change in the same commits. After every change to a question, the session receives the
 * question's record, which the transcript shows. `../inbound/interactions.ts` handles the answers.
 */
import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { Approval } from '../../../protocol/interactions/events.ts'
import type { Interaction, Question } from '../../../protocol/interactions/schema.ts'
import { cut } from '../../../protocol/naming.ts'
import { patch } from '../../../protocol/patch.ts'
import { valueFaults } from '../../../protocol/rules/json-schema/validate.ts'
import type { GrantedTool } from '../../../protocol/sessions/turns/definition.ts'
import { askSchema } from '../../../protocol/sessions/turns/tools.ts'
import { isPrivate } from '../../../protocol/sessions/visibility.ts'
import { type Draft, depthOf, noteCall, noteTurn, tellInteraction, turnOf } from '../draft.ts'
import type { Turn } from '../state.ts'
import { rejectFaultyCall, settleCall } from './call-results.ts'

/** Seconds until a question without its own expiry expires, so that no turn waits forever. */
const QUESTION_TIMEOUT_S = 7 * 86_400
type Asked = Pick<Interaction, 'kind' | 'title' | 'target_user_ids' | 'resolution_policy'> &
  Partial<Pick<Interaction, 'description' | 'spec' | 'context' | 'expires_at'>>

/**
 * Returns the default targets of a turn's questions: the principal that requested the turn or, if
 * that principal is an agent or the service itself, administrators and owners.
 */
const answerers = ({ work: { asker } }: Turn): string[] =>
  asker.type === 'user' || asker.type === 'service_account'
    ? [asker.id]
    : ['role:Admin', 'role:Owner']

function ask(
  draft: Draft,
  id: string,
  call: string,
  asks: 'person' | 'approval',
  question: Asked,
  approval?: Approval,
): void {
  const interaction_id = draft.cause.mint('interaction')
  noteCall(draft, id, call, {
    state: 'asking',
    interaction_id,
    asks,
    ...(question.expires_at !== undefined && { expires_at: question.expires_at }),
  })
  tellInteraction(draft, interaction_id, 'interaction.ask', {
    ...question,
    depth: depthOf(turnOf(draft, id) as Turn),
    ...(isPrivate(patch(draft.state.record, draft.change)) && { withheld: true }),
    ...(approval && { approval }),
    consumer: {
      kind: 'agent_tool',
      agent_tool: { invocation_id: id, tool_call_id: call, session_id: draft.state.record.id },
    },
  })
}

/** Handles the model's call to the ask tool. */
export function askPerson(draft: Draft, id: string, call: string, input: JsonObject): void {
  if (rejectFaultyCall(draft, id, call, valueFaults(askSchema, input, ''))) return
  const {
    kind = 'request_information',
    title,
    description,
    target_user_ids,
    options,
    expires_in_seconds,
  } = input as {
    kind?: Interaction['kind']
    title: string
    description?: string
    target_user_ids?: string[]
    options?: NonNullable<Question['options']>
    expires_in_seconds?: number
  }
  const targets = [...new Set(target_user_ids ?? [])]
  const spec: Question | undefined =
    options && options.length > 0 && kind !== 'assign_work'
      ? { mode: 'select', options: distinct(options) }
      : kind === 'request_approval'
        ? { mode: 'confirm' }
        : kind === 'assign_work'
          ? undefined
          : { mode: 'input', multiline: true }
  ask(draft, id, call, 'person', {
    kind,
    title,
    target_user_ids: targets.length > 0 ? targets : answerers(turnOf(draft, id) as Turn),
    resolution_policy: { type: 'any_of' },
    ...(description !== undefined && { description }),
    ...(spec && { spec }),
    expires_at: timestamp(draft.cause.at + (expires_in_seconds ?? QUESTION_TIMEOUT_S) * 1000),
  })
}
const distinct = (options: NonNullable<Question['options']>): NonNullable<Question['options']> =>
  options
    .filter(({ value }, index) => options.findIndex((other) => other.value === value) === index)
    .map(({ value, label }) => ({ value, label }))

/**
 * Returns the targets of an approval: the roles whose holders may execute the action. If a separate
 * approver is required, a role is omitted if the principal that requested the turn is its only
 * holder.
 */
const approversOf = ({ work: { asker, definition } }: Turn, tool: GrantedTool) =>
  tool.approvers
    ?.filter(({ sole }) => !definition.separate_approver || sole !== asker.id)
    .map(({ target }) => target)

/**
 * Requests approval for one call to a destructive action. The call fails if no principal can
 * approve it.
 */
export function askApproval(
  draft: Draft,
  id: string,
  call: string,
  tool: GrantedTool,
  input: JsonObject,
): void {
  const turn = turnOf(draft, id) as Turn
  const { asker, definition } = turn.work
  const { name, description } = tool
  const approvers = approversOf(turn, tool)
  if (approvers?.length === 0)
    return void settleCall(draft, id, call, {
      status: 'error',
      content: JSON.stringify({
        error: `No principal can approve ${name}: it requires the permission actions.execute.${name}.`,
        approved: false,
      }),
    })
  ask(
    draft,
    id,
    call,
    'approval',
    {
      kind: 'request_approval',
      title: cut(`${definition.agent_name} wants to run ${name}`, 512),
      ...(description !== undefined && { description }),
      target_user_ids: approvers ?? answerers(turn),
      resolution_policy: { type: 'any_of' },
      spec: { mode: 'confirm' },
      context: { action: name, parameters: input },
      expires_at: timestamp(draft.cause.at + QUESTION_TIMEOUT_S * 1000),
    },
    approvers && {
      action: name,
      ...(definition.separate_approver && { excludes: [asker.id] }),
    },
  )
}

/**
 * Withdraws the questions that the agent has asked in a waiting turn, because a nudge wakes the
 * turn. The results of their calls state that the questions were interrupted. Requested approvals
 * stay open.
 * @returns whether a question was withdrawn.
 */
export function withdrawQuestions(draft: Draft, id: string): boolean {
  const turn = turnOf(draft, id)
  const asked = Object.values(turn?.work.segment?.calls ?? {}).filter(
    ({ state, asks }) => state === 'waiting' && asks === 'person',
  )
  if (turn?.record.status !== 'waiting' || asked.length === 0) return false
  noteTurn(draft, id, { interrupted: asked.map((call) => call.id) })
  for (const { interaction_id = '' } of asked)
    tellInteraction(draft, interaction_id, 'interaction.withdraw', { reason: 'user_direction' })
  return true
}
