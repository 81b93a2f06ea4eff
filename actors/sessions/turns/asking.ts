/**
 * Questions to people from within a turn, through the ask tool or because an action is
 * destructive. A question lives in the session's shard; the question and its waiting turn change in
 * the same commits. After every change of a question the session receives its record, which the
 * transcript shows.
 */
import { type JsonObject, timestamp } from '../../../protocol/common.ts'
import type { Approval } from '../../../protocol/interactions/events.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { type Question, settledStatuses } from '../../../protocol/interactions/schema.ts'
import { patch } from '../../../protocol/patch.ts'
import { valueFaults } from '../../../protocol/rules/json-schema/validate.ts'
import type { SessionCommands } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { GrantedTool } from '../../../protocol/sessions/turns/definition.ts'
import { askSchema } from '../../../protocol/sessions/turns/tools.ts'
import { isPrivate } from '../../../protocol/sessions/visibility.ts'
import type { Cause, Decision } from '../../actor.ts'
import {
  type Draft,
  depthOf,
  draft,
  emit,
  note,
  noteCall,
  nothing,
  patchCall,
  silently,
  tellInteraction,
  turnOf,
  upsert,
} from '../draft.ts'
import type { Live, SessionState, Turn } from '../state.ts'
import { callOf, settle, waitOf } from './segment.ts'
import { conclude, goOn, openQuestions, pump, requeue } from './turns.ts'

/** Seconds until a question without its own expiry expires, so that no turn waits forever. */
const QUESTION_TIMEOUT_S = 7 * 86_400
type Asked = Pick<Interaction, 'kind' | 'title' | 'target_user_ids' | 'resolution_policy'> &
  Partial<Pick<Interaction, 'description' | 'spec' | 'context' | 'expires_at'>>

/**
 * The targets of a turn's questions: the principal that requested the turn; if that is an agent or
 * the service itself, administrators and owners.
 */
const answerers = ({ work: { asker } }: Turn): string[] =>
  asker.type === 'user' || asker.type === 'service_account'
    ? [asker.id]
    : ['role:Admin', 'role:Owner']

function ask(
  on: Draft,
  id: string,
  call: string,
  asks: 'person' | 'approval',
  question: Asked,
  approval?: Approval,
): void {
  const interaction_id = on.cause.mint('interaction')
  noteCall(on, id, call, {
    state: 'asking',
    interaction_id,
    asks,
    ...(question.expires_at !== undefined && { expires_at: question.expires_at }),
  })
  tellInteraction(on, interaction_id, 'interaction.ask', {
    ...question,
    depth: depthOf(turnOf(on, id) as Turn),
    ...(isPrivate(patch(on.state.record, on.change)) && { withheld: true }),
    ...(approval && { approval }),
    consumer: {
      kind: 'agent_tool',
      agent_tool: { invocation_id: id, tool_call_id: call, session_id: on.state.record.id },
    },
  })
}

/** Handle the model's call of the ask tool. */
export function askPerson(on: Draft, id: string, call: string, input: JsonObject): void {
  const faults = valueFaults(askSchema, input, '')
  if (faults.length > 0)
    return void settle(on, id, call, {
      status: 'error',
      content: JSON.stringify({
        error: 'the arguments do not match the tool',
        fields: faults.slice(0, 20),
      }),
    })
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
  ask(on, id, call, 'person', {
    kind,
    title,
    target_user_ids: targets.length > 0 ? targets : answerers(turnOf(on, id) as Turn),
    resolution_policy: { type: 'any_of' },
    ...(description !== undefined && { description }),
    ...(spec && { spec }),
    expires_at: timestamp(on.cause.at + (expires_in_seconds ?? QUESTION_TIMEOUT_S) * 1000),
  })
}
const distinct = (options: NonNullable<Question['options']>): NonNullable<Question['options']> =>
  options
    .filter(({ value }, index) => options.findIndex((other) => other.value === value) === index)
    .map(({ value, label }) => ({ value, label }))

/**
 * The targets of an approval: the roles whose holders may execute the action. With a separate
 * approver, a role counts only when a principal other than the turn's asker holds it.
 */
const approversOf = ({ work: { asker, definition } }: Turn, tool: GrantedTool) =>
  tool.approvers
    ?.filter(({ sole }) => !definition.separate_approver || sole !== asker.id)
    .map(({ target }) => target)

/**
 * Request approval for a destructive action: each call needs the approval of a principal that may
 * execute the action.
 */
export function askApproval(
  on: Draft,
  id: string,
  call: string,
  tool: GrantedTool,
  input: JsonObject,
): void {
  const turn = turnOf(on, id) as Turn
  const { asker, definition } = turn.work
  const { name, description } = tool
  const approvers = approversOf(turn, tool)
  if (approvers?.length === 0)
    return void settle(on, id, call, {
      status: 'error',
      content: JSON.stringify({
        error: `No principal can approve ${name}: it requires the permission actions.execute.${name}.`,
        approved: false,
      }),
    })
  ask(
    on,
    id,
    call,
    'approval',
    {
      kind: 'request_approval',
      title: `${definition.agent_name} wants to run ${name}`.slice(0, 512),
      ...(description !== undefined && { description }),
      target_user_ids: approvers ?? answerers(turn),
      resolution_policy: { type: 'any_of' },
      spec: { mode: 'confirm' },
      context: { action: name, parameters: input },
      expires_at: timestamp(on.cause.at + QUESTION_TIMEOUT_S * 1000),
    },
    approvers && {
      action: name,
      ...(definition.separate_approver && { excludes: [asker.id] }),
    },
  )
}

/** Handle a change of one of this session's questions. */
export const interactionChanged =
  (brand: string) =>
  (
    state: SessionState,
    { interaction, invalid }: SessionCommands['interaction.changed']['input'],
    cause: Cause,
  ): Decision<SessionEvent, undefined> => {
    if (!state.record || state.gone) return nothing
    const on = draft(state as Live, cause, brand)
    emit(on, { type: 'interaction.upsert', ...interaction })
    const { invocation_id: id = '', tool_call_id = '' } = interaction.consumer.agent_tool ?? {}
    const call = callOf(on, id, tool_call_id)
    if (call?.interaction_id !== interaction.id || call.state === 'done') return silently(on)
    if (!settledStatuses.has(interaction.status)) opened(on, id, call.id)
    else resolved(on, id, call.id, interaction, invalid)
    return silently(on)
  }

function opened(on: Draft, id: string, tool_call_id: string): void {
  const call = callOf(on, id, tool_call_id)
  if (call?.state !== 'asking' || call.interaction_id === undefined) return
  patchCall(on, id, call.index, {
    status: 'waiting',
    progress: { interaction_id: call.interaction_id },
  })
  noteCall(on, id, call.id, { state: 'waiting' })
  goOn(on, id)
}

/** Handle a settled question: the call gets its result, or its approved action becomes ready. */
function resolved(
  on: Draft,
  id: string,
  tool_call_id: string,
  interaction: Interaction,
  invalid = false,
): void {
  const turn = turnOf(on, id) as Turn
  const call = callOf(on, id, tool_call_id)
  if (!call) return
  const approved =
    call.asks === 'approval' && interaction.status === 'completed' && interaction.outcome === true
  if (turn.work.ending) {
    settle(on, id, tool_call_id, { status: 'cancelled', content: '' })
    const now = turnOf(on, id)
    if (now && openQuestions(now).length === 0) conclude(on, id)
    return
  }
  if (invalid)
    settle(on, id, tool_call_id, {
      status: 'error',
      content: JSON.stringify({ error: interaction.cancel_reason }),
    })
  else if (approved) {
    patchCall(on, id, call.index, { status: 'pending', progress: null })
    noteCall(on, id, tool_call_id, { state: 'ready' })
  } else if (turn.work.interrupted?.includes(tool_call_id))
    settle(on, id, tool_call_id, {
      status: 'ok',
      content: JSON.stringify({ interrupted: true, reason: 'user_direction' }),
    })
  else
    settle(on, id, tool_call_id, {
      status: statusOf(interaction, call.asks),
      content: JSON.stringify(told(interaction, call.asks)),
      fine: call.asks !== 'approval' || interaction.status === 'cancelled',
    })
  resume(on, id)
}
/**
 * The status of a call after its question. A refused or expired approval that the service demanded
 * is an error of the call; a question of the agent never is.
 */
const statusOf = ({ status }: Interaction, asks: 'person' | 'approval' | undefined) =>
  status === 'cancelled' ? 'cancelled' : asks === 'approval' ? 'error' : 'ok'
/**
 * Continue a turn: a waiting turn is queued again when a call is ready or no question is left, and
 * otherwise waits for its next question.
 */
function resume(on: Draft, id: string): void {
  const turn = turnOf(on, id)
  if (!turn) return
  if (turn.record.status !== 'waiting') return void goOn(on, id)
  const calls = Object.values(turn.work.segment?.calls ?? {})
  const waiting = calls.find(({ state }) => state === 'waiting')
  if (waiting && !calls.some(({ state }) => state === 'ready')) {
    if (turn.record.wait?.interaction_id !== waiting.interaction_id)
      upsert(on, id, { wait: waitOf(waiting) })
    return
  }
  requeue(on, id)
  pump(on)
}

/** The result of a question, as the model receives it. */
function told(
  { status, outcome, responder, responses, resolving_response_id, cancel_reason }: Interaction,
  asks: 'person' | 'approval' | undefined,
): JsonObject {
  const comment = responses.find((response) => response.id === resolving_response_id)?.comment
  const refused = asks === 'approval' && { approved: false }
  if (status === 'completed')
    return {
      status,
      ...refused,
      outcome,
      ...(comment !== undefined && { comment }),
      ...(responder && { responder: responder.user_id }),
    }
  return { status, ...refused, ...(cancel_reason !== undefined && { reason: cancel_reason }) }
}

/**
 * Withdraw the open questions of a waiting turn for a more urgent message; their calls are answered
 * as interrupted.
 * @returns whether there were any.
 */
export function interrupt(on: Draft, id: string): boolean {
  const turn = turnOf(on, id)
  const asked = Object.values(turn?.work.segment?.calls ?? {}).filter(
    ({ state, asks }) => state === 'waiting' && asks === 'person',
  )
  if (turn?.record.status !== 'waiting' || asked.length === 0) return false
  note(on, id, { interrupted: asked.map((call) => call.id) })
  for (const { interaction_id = '' } of asked)
    tellInteraction(on, interaction_id, 'interaction.withdraw', { reason: 'user_direction' })
  return true
}
