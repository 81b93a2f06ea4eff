/**
 * Messaging bindings of agents. The service only stores them.
 *
 * Invariant: in a project, an account (provider and integration) has at most one enabled binding,
 * and each agent has at most one binding to it.
 */

import {
  type BindingEvent,
  bindingLimits,
  type MessagingBinding,
} from '../../protocol/agents/messaging-bindings.ts'
import type { agents as rows } from '../../protocol/agents/rows.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Cause, Decision } from '../actor.ts'
import { differences } from '../configuration.ts'
import type { ProjectState } from './state.ts'

type Rows = typeof rows
type Decided<R> = Decision<BindingEvent, R>

const sameAccount = (
  a: Pick<MessagingBinding, 'provider' | 'integration_id'>,
  b: Pick<MessagingBinding, 'provider' | 'integration_id'>,
): boolean => a.provider === b.provider && a.integration_id === b.integration_id
/** Returns the bindings of an agent, oldest first, or undefined if there is no such agent. */
export const bindingsOf = (
  { agents, bindings }: ProjectState,
  { id }: { readonly id: string },
): { items: MessagingBinding[] } | undefined =>
  getOwn(agents, id) && {
    items: Object.values(bindings).filter((binding) => binding.agent_id === id),
  }

/**
 * Returns the binding that replaces an existing one, and the event that stores it. If nothing
 * changed, returns the existing binding without an event.
 */
function replaced(
  before: MessagingBinding,
  wish: MessagingBinding,
  at: number,
): { readonly events: readonly BindingEvent[]; readonly binding: MessagingBinding } {
  const binding = { ...wish, created_at: before.created_at, updated_at: timestamp(at) }
  const changes = differences({ ...before, updated_at: '' }, { ...binding, updated_at: '' })
  return Object.keys(changes).length === 0
    ? { events: [], binding: before }
    : { events: [{ type: 'binding.updated', id: before.id, binding, changes }], binding }
}

/**
 * Creates or replaces the binding of an agent to an account. If the new binding is enabled and
 * another agent also has an enabled binding to the account, refuses the request or, with
 * `replace_existing`, disables the binding of the other agent.
 */
export function setBinding(
  state: ProjectState,
  { id: agent_id, project: _, replace_existing = false, ...wish }: Input<Rows['agent.set_binding']>,
  cause: Cause,
): Decided<MessagingBinding> {
  if (!getOwn(state.agents, agent_id)) return refuse('not_found')
  const all = Object.values(state.bindings)
  const before = all.find((binding) => binding.agent_id === agent_id && sameAccount(binding, wish))
  if (
    !before &&
    all.filter((binding) => binding.agent_id === agent_id).length >= bindingLimits.bindings
  )
    return refuse(
      'conflict',
      { limit: bindingLimits.bindings },
      `An agent has at most ${bindingLimits.bindings} bindings.`,
    )
  const {
    enabled = false,
    dms = true,
    mentions = true,
    all_messages = false,
    channels = [],
    dm_policy = 'open',
    sender_allow = [],
    reply_mode = 'auto',
    model_route,
    compaction_policy,
  } = wish
  const rival = enabled
    ? all.find(
        (binding) => binding.enabled && binding.agent_id !== agent_id && sameAccount(binding, wish),
      )
    : undefined
  if (rival && !replace_existing)
    return refuse(
      'conflict',
      { binding_id: rival.id, agent_id: rival.agent_id },
      'Another agent is bound to this account; send replace_existing to replace it.',
    )
  const now = timestamp(cause.at)
  const next: MessagingBinding = {
    id: before?.id ?? cause.mint('binding'),
    agent_id,
    provider: wish.provider,
    integration_id: wish.integration_id,
    enabled,
    dms,
    mentions,
    all_messages,
    channels,
    dm_policy,
    sender_allow,
    reply_mode,
    ...(model_route && { model_route }),
    ...(compaction_policy && Object.keys(compaction_policy).length > 0 && { compaction_policy }),
    created_at: now,
    updated_at: now,
  }
  const mine = before
    ? replaced(before, next, cause.at)
    : { events: [{ type: 'binding.created', id: next.id, binding: next } as const], binding: next }
  return {
    events: [
      ...(rival ? replaced(rival, { ...rival, enabled: false }, cause.at).events : []),
      ...mine.events,
    ],
    reply: mine.binding,
  }
}

/** Deletes a binding of an agent. */
export function deleteBinding(
  state: ProjectState,
  { id, binding_id }: Input<Rows['agent.delete_binding']>,
): Decided<undefined> {
  const binding = getOwn(state.bindings, binding_id)
  return binding?.agent_id === id
    ? { events: [{ type: 'binding.deleted', id: binding_id }], reply: undefined }
    : refuse('not_found')
}
