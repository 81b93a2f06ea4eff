/**
 * Messages of a channel, numbered 1, 2, 3… in the order of commit. The state contains the channel,
 * its members and its pinned messages. Only views store the messages themselves. A command that
 * replies to a message or edits it therefore contains the facts about that message. These facts
 * never change while the channel exists, so a command that arrives late is safe. A command that
 * sends a message also contains the agents that the message concerns (`Calls`). They are used only
 * to decide which agents to wake.
 */
import { brandedPermission } from '../../protocol/access/schema.ts'
import type { Api } from '../../protocol/api.ts'
import { artifactReferences } from '../../protocol/artifacts/reference.ts'
import {
  type ChannelEvent,
  type ChannelMessage,
  limits,
  type MessageFacts,
  type Person,
} from '../../protocol/channels/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { Patch } from '../../protocol/patch.ts'
import type { Cause, Decision } from '../actor.ts'
import { type Calls, postMessage } from './exchanges.ts'
import { type ChannelState, isOpen, isReadable, memberOf, type OpenChannel } from './state.ts'

/**
 * Data that the gateway adds to the input of `channel.send`, in addition to `Calls`. `target`: the
 * message to which the new message replies, if any; `agent`: the agent to which the new message is
 * attributed, if any.
 */
export interface SendFacts {
  readonly target?: MessageFacts
  readonly agent?: Person
  /** The agent of the session from which the message is sent, if that session exists. */
  readonly session_agent?: string
  /** Whether the caller may act for agents. */
  readonly may_invoke: boolean
}
/**
 * Data that the gateway adds to an edit. `target`: the message; absent if the channel has no
 * message with this id.
 */
export interface EditFacts {
  readonly target?: MessageFacts
}
type Send = Input<Api['channel.send']> & SendFacts & Calls
type Edit = Input<Api['channel.edit']> & EditFacts

/** Returns the channel, or refuses if the caller may not write to it. */
function writable(state: ChannelState, { principal }: Cause): OpenChannel | Refusal {
  if (!isOpen(state) || !isReadable(state, principal.id)) return refuse('not_found')
  if (!memberOf(state, principal.id)) return refuse('not_channel_member')
  return state.settings.archived_at === undefined ? state : refuse('channel_archived')
}

/** Returns the sender fields of a message that is attributed to an agent. */
function attribution(
  brand: string,
  state: ChannelState,
  input: Send,
  { principal }: Cause,
): Partial<ChannelMessage> | Refusal {
  if (input.sender_agent_id === undefined) return {}
  const { agent } = input
  if (!agent || memberOf(state, agent.id)?.kind !== 'agent')
    return refuseFields({
      field: 'sender_agent_id',
      message: 'there is no such agent in the channel',
      actual: input.sender_agent_id,
    })
  if (!input.may_invoke && principal.id !== agent.id)
    return refuse('permission_denied', {
      permission: brandedPermission('agent.invoke', brand.toLowerCase()),
    })
  if (input.sender_session_id !== undefined && input.session_agent !== agent.id)
    return refuseFields({
      field: 'sender_session_id',
      message: 'there is no such session of this agent',
      actual: input.sender_session_id,
    })
  return {
    sender_id: agent.id,
    sender_type: 'agent',
    sender_agent_id: agent.id,
    sent_by: principal.id,
    ...(input.sender_session_id !== undefined && { sender_session_id: input.sender_session_id }),
  }
}

/**
 * Sends a message. The replies of commands are stored to answer repeated requests. The reply of
 * this command therefore omits content and metadata, which the gateway already has.
 */
export const send =
  (brand: string) =>
  (state: ChannelState, input: Send, cause: Cause): Decision<ChannelEvent, ChannelMessage> => {
    const found = writable(state, cause)
    if ('refused' in found) return found
    const from = attribution(brand, state, input, cause)
    if ('refused' in from) return from
    if (input.reply_to !== undefined && !input.target)
      return refuseFields({
        field: 'reply_to',
        message: 'there is no such message in the channel',
        actual: input.reply_to,
      })
    const { id, seq, channel_id, ...rest } = {
      id: cause.mint('message'),
      channel_id: found.settings.id,
      seq: state.message_seq + 1,
      pinned: false,
      ...(input.target && { reply_to: input.target.reply_to ?? input.target.id }),
      sender_id: cause.principal.id,
      sender_type: cause.principal.type === 'agent' ? 'agent' : 'user',
      ...from,
      created_at: timestamp(cause.at),
    } as Omit<ChannelMessage, 'content'>
    const { content, metadata } = input
    const { id: asker, type } = cause.principal
    const message: ChannelMessage = {
      id,
      channel_id,
      seq,
      content,
      ...(metadata && { metadata }),
      ...rest,
    }
    return {
      ...postMessage(found, message, input, { id: asker, type }, cause),
      reply: { id, channel_id, seq, ...rest } as ChannelMessage,
    }
  }

/**
 * Changes a message: its sender may change content and metadata, and any member may pin or unpin
 * it. The reply is empty, because the gateway reads the message afterwards.
 */
export function edit(
  state: ChannelState,
  input: Edit,
  cause: Cause,
): Decision<ChannelEvent, ChannelMessage> {
  const found = writable(state, cause)
  if ('refused' in found) return found
  const { target, content, metadata, pinned } = input
  if (!target) return refuse('not_found')
  if ((content !== undefined || metadata !== undefined) && target.sender_id !== cause.principal.id)
    return refuse('forbidden', undefined, 'Only the sender may change a message.')
  const fresh = pinned === true && state.pinned[target.id] === undefined
  if (fresh && Object.keys(state.pinned).length >= limits.pinned)
    return refuse('pin_limit_reached', { limit: limits.pinned })
  const message: Patch<ChannelMessage> = {
    ...(content !== undefined && { content }),
    ...(metadata !== undefined && { metadata }),
    ...(pinned !== undefined && { pinned }),
    edited_at: timestamp(cause.at),
  }
  return {
    events: [
      {
        type: 'message.updated',
        id: target.id,
        message,
        ...(artifactReferences(metadata).length > 0 && { metadata_by: cause.principal.id }),
      },
    ],
    reply: {} as ChannelMessage,
  }
}
