/**
 * Agents of a project: their settings and their principals.
 *
 * Invariants: an agent and its principal have one id and are created and deleted in one commit.
 * Names are unique among existing agents. An external reference is set once and never reused, not
 * even after its agent is deleted.
 */

import type { KeyEvent, PrincipalEvent } from '../../protocol/access/rows.ts'
import type { agents as rows } from '../../protocol/agents/rows.ts'
import { type Agent, type AgentEvent, routeFaults } from '../../protocol/agents/schema.ts'
import type { BlueprintClaim } from '../../protocol/blueprints/stored.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { reservedTags } from '../../protocol/naming.ts'
import { refuseBeyondLimit } from '../../protocol/projects/limits.ts'
import type { Cause, Decision } from '../actor.ts'
import { type Change, changeOf } from '../configuration.ts'
import { newAgent } from './access/principals.ts'
import type { ProjectOptions, ProjectState } from './state.ts'

type Rows = typeof rows
type Decided<R> = Decision<AgentEvent | PrincipalEvent | KeyEvent, R>
/** The domain of the agents' e-mail addresses. The gateway adds it to the input. */
export interface Domain {
  readonly domain: string
}
type Wish = { readonly [K in keyof Agent]?: Agent[K] | undefined }

/**
 * Returns the requested settings in the form that `changeOf` expects: a value that stands for the
 * default becomes empty, so that `changeOf` removes the field.
 */
function wishOf(input: Omit<Input<Rows['agent.update']>, 'project' | 'id'>): Wish {
  const {
    name,
    external_ref,
    description,
    color,
    model,
    model_route,
    tool_presentation,
    system_prompt,
    timeout_seconds,
    status,
    compaction_policy,
    memory_context,
    thinking_effort,
    tags,
  } = input
  return {
    name,
    external_ref,
    description,
    color,
    model,
    model_route,
    tool_presentation,
    system_prompt,
    status,
    compaction_policy,
    tags,
    memory_context: memory_context as Agent['memory_context'],
    timeout_seconds: (timeout_seconds === 0 ? '' : timeout_seconds) as number | undefined,
    thinking_effort: (thinking_effort === 'inherit'
      ? ''
      : thinking_effort) as Agent['thinking_effort'],
  }
}
/**
 * Returns another agent with this name or external reference, or undefined if no other agent has
 * it.
 */
const another = (
  { agents }: ProjectState,
  field: 'name' | 'external_ref',
  value: string | undefined,
  self?: string,
): Agent | undefined =>
  value === undefined
    ? undefined
    : Object.values(agents).find((agent) => agent.id !== self && agent[field] === value)
/**
 * Returns the id of the deleted agent that had this external reference, or undefined if no deleted
 * agent had it.
 */
const formerly = ({ retired }: ProjectState, external_ref: string): string | undefined =>
  Object.entries(retired).find(([, ref]) => ref === external_ref)?.[0]
function taken(
  state: ProjectState,
  { name, external_ref }: Pick<Wish, 'name' | 'external_ref'>,
  self?: string,
): Refusal | undefined {
  if (another(state, 'name', name, self))
    return refuse(
      'already_exists',
      { field: 'name', name },
      'An agent with this name already exists.',
    )
  if (
    external_ref !== undefined &&
    (another(state, 'external_ref', external_ref, self) ?? formerly(state, external_ref))
  )
    return refuse(
      'already_exists',
      { field: 'external_ref', external_ref },
      'The external reference belongs to another agent.',
    )
  return undefined
}

/**
 * Adopts an existing agent with the requested external reference: the reply is that agent, and
 * nothing is written. Returns undefined if no agent ever had the reference. Refuses with
 * `external_identity_conflict` if the agent was deleted or has another name.
 */
function adopt(
  state: ProjectState,
  { name, external_ref = '' }: Input<Rows['agent.create']>,
): Decided<Agent> | undefined {
  const gone = formerly(state, external_ref)
  if (gone !== undefined)
    return refuse(
      'external_identity_conflict',
      { agent_id: gone },
      'The external reference belongs to a deleted agent.',
    )
  const match = another(state, 'external_ref', external_ref)
  if (!match) return undefined
  if (match.name !== name)
    return refuse(
      'external_identity_conflict',
      { agent_id: match.id, name: match.name },
      'The external reference belongs to an agent of another name.',
    )
  const adopted = { ...match, status_code: 200 }
  return { events: [], reply: adopted }
}

/** Creates or adopts an agent. The reply to an adoption has `status_code: 200`. */
export function createAgent(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['agent.create']> & BlueprintClaim,
  cause: Cause,
): Decided<Agent> {
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const adopted = input.if_exists === 'adopt' ? adopt(state, input) : undefined
  if (adopted) return adopted
  const refused = taken(state, input)
  if (refused) return refused
  const full = refuseBeyondLimit('agent', Object.keys(state.agents).length)
  if (full) return full
  const { id, event } = newAgent(state, input.name, cause, input.blueprint?.binding.resource_id)
  const now = timestamp(cause.at)
  const { if_exists: _, ...settings } = input
  const base: Agent = {
    id,
    principal_id: id,
    name: input.name,
    tool_presentation: 'meta',
    status: 'active',
    created_by: cause.principal.id,
    created_at: now,
    updated_at: now,
  }
  const agent = changeOf<Agent>(base, wishOf(settings), cause.at)?.next ?? base
  return { events: [{ type: 'agent.created', id, agent }, event], reply: agent }
}

/**
 * Returns the changes for the audit log, with the lengths of the system prompts instead of their
 * texts.
 */
function audited({ changes }: Change<Agent>): Change<Agent>['changes'] {
  const { system_prompt, ...rest } = changes
  const length = (text: unknown) => ({ characters: String(text ?? '').length })
  return system_prompt
    ? { ...rest, system_prompt: { from: length(system_prompt.from), to: length(system_prompt.to) } }
    : rest
}

/** Changes an agent. Renaming an agent also renames its principal. */
export function updateAgent(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['agent.update']>,
  cause: Cause,
): Decided<Agent> {
  const agent = getOwn(state.agents, input.id)
  if (!agent) return refuse('not_found')
  const wish = wishOf(input)
  if (
    wish.external_ref !== undefined &&
    agent.external_ref !== undefined &&
    wish.external_ref !== agent.external_ref
  )
    return refuse(
      'conflict',
      { field: 'external_ref', external_ref: agent.external_ref },
      'The external reference is set and cannot be changed.',
    )
  const change = changeOf<Agent>(agent, wish, cause.at)
  const faults = [
    ...reservedTags(input.tags, brand),
    ...(change ? routeFaults(change.next.model_route, change.next.model) : []),
  ]
  if (faults.length > 0) return refuseFields(...faults)
  const refused = taken(state, wish, agent.id)
  if (refused) return refused
  if (!change) return { events: [], reply: agent }
  const updated_by = cause.principal.id
  const principal = getOwn(state.principals, agent.id)
  const renamed =
    principal && change.next.name !== agent.name
      ? changeOf(principal, { name: change.next.name }, cause.at)
      : undefined
  return {
    events: [
      {
        type: 'agent.updated',
        id: agent.id,
        agent: { ...change.patch, updated_by },
        changes: audited(change),
      },
      ...(renamed
        ? [
            {
              type: 'principal.updated',
              id: agent.id,
              principal: renamed.patch,
              changes: renamed.changes,
            } as const,
          ]
        : []),
    ],
    reply: { ...change.next, updated_by },
  }
}

/** Assigns an agent its e-mail address. A repeat changes nothing. */
export function openInbox(
  state: ProjectState,
  { id, domain }: Input<Rows['agent.inbox']> & Domain,
  cause: Cause,
): Decided<Agent> {
  const agent = getOwn(state.agents, id)
  if (!agent) return refuse('not_found')
  if (agent.email_address !== undefined) return { events: [], reply: agent }
  const change = changeOf<Agent>(agent, { email_address: `${id}@${domain}` }, cause.at)
  if (!change) return { events: [], reply: agent }
  const updated_by = cause.principal.id
  return {
    events: [
      {
        type: 'agent.updated',
        id,
        agent: { ...change.patch, updated_by },
        changes: change.changes,
      },
    ],
    reply: { ...change.next, updated_by },
  }
}

/** Deletes an agent: its principal is archived, and its credentials are revoked. */
export function deleteAgent(
  state: ProjectState,
  { id }: Input<Rows['agent.delete']>,
  { at }: Cause,
): Decided<undefined> {
  const agent = getOwn(state.agents, id)
  if (!agent) return refuse('not_found')
  const keys = Object.values(state.keys).filter(({ key }) => key.principal_id === id)
  return {
    events: [
      ...keys.map(({ key }) => ({ type: 'key.revoked', id: key.id, name: key.name, at }) as const),
      {
        type: 'agent.deleted',
        id,
        name: agent.name,
        ...(agent.external_ref !== undefined && { external_ref: agent.external_ref }),
      },
      { type: 'principal.deleted', id, name: agent.name },
    ],
    reply: undefined,
  }
}
