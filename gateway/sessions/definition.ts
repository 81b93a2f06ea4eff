/**
 * What a turn runs with, looked up before its command is sent: the agent, and the definition that all layers together give.
 * Tools are resolved here and nowhere else: a session is handed a list of what is granted.
 */
import type { Agent } from '../../protocol/agents/schema.ts'
import {
  configuredTools,
  effectiveDefinition,
  type AgentSource,
  type EffectiveDefinition,
} from '../../protocol/agents/definition.ts'
import { clearsConfig, type InlineConfig } from '../../protocol/agents/inline.ts'
import { findModel } from '../../protocol/agents/models.ts'
import type { OrganizationDirectory, ProjectDirectory } from '../../protocol/access/directory.ts'
import { isRefusal, refuse, refuseFields, type Refusal } from '../../protocol/errors.ts'
import type { TurnWanted } from '../../protocol/internal.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Defined, GrantedTool } from '../../protocol/sessions/turns/definition.ts'
import type { Session } from '../../protocol/sessions/schema.ts'
import { refusedTools } from '../commands/actions-named.ts'
import type { Caller } from '../auth/authenticate.ts'
import { agentSource, byName, type CapabilityReader } from '../queries/agent-capabilities.ts'
import { grantedTools, remembered } from './tools.ts'

/** What turns of agents begin with, by agent. Agents, what they are given and what that is are configuration: as long as that is the one that is known (directory.ts, D2), so is this. */
const sources = new WeakMap<
  ProjectDirectory,
  { readonly organization: OrganizationDirectory; readonly byAgent: Map<string, AgentSource> }
>()
async function sourceOf(
  edge: CapabilityReader,
  project: string,
  id: string,
): Promise<AgentSource | Refusal> {
  const here = await edge.directory.project(project)
  if (isRefusal(here)) return here
  const organization = await edge.directory.organization()
  if (isRefusal(organization)) return organization
  let known = sources.get(here)
  if (known?.organization !== organization)
    sources.set(here, (known = { organization, byAgent: new Map() }))
  const kept = known.byAgent.get(id)
  if (kept) return kept
  const source = await agentSource(edge, project, id)
  if (!isRefusal(source)) known.byAgent.set(id, source)
  return source
}

/** The agent that a reference names, in use or not. @param field of the request that has the reference, for the refusal. */
export async function findAgent(
  { world, directory }: CapabilityReader,
  project: string,
  ref: { readonly id?: string; readonly name?: string },
  field?: string,
): Promise<Agent | Refusal> {
  const known = await directory.project(project)
  if (isRefusal(known)) return known
  const id =
    ref.id ?? Object.entries(known.agents).find(([, { name }]) => name === ref.name)?.[0] ?? ''
  if (!getOwn(known.agents, id))
    return refuse(
      'not_found',
      {
        resource: 'agent',
        ...(field !== undefined && {
          fields: [{ field, message: 'there is no such agent in this project' }],
        }),
      },
      'There is no such agent in this project.',
    )
  const source = await sourceOf({ world, directory }, project, id)
  return isRefusal(source) ? source : source.agent
}
/** The agent, when it is in use. */
export const inUse = (agent: Agent): Agent | Refusal =>
  agent.status === 'active' ? agent : refuse('agent_inactive', { agent_id: agent.id })
/** The agent that a reference names; `not_found` when there is none, `agent_inactive` when it is not in use. */
export async function agentOf(
  asking: CapabilityReader,
  project: string,
  ref: { readonly id?: string; readonly name?: string },
): Promise<Agent | Refusal> {
  const agent = await findAgent(asking, project, ref)
  return isRefusal(agent) ? agent : inUse(agent)
}

/** What a request says about the definition of its turn. */
export interface Wanted {
  readonly config?: InlineConfig
  /** What the author of the config may do; absent without a config. */
  readonly author?: Caller['permissions']
  readonly operation?: { readonly timeout_seconds?: number }
  /** What the step of a run says. */
  readonly step?: TurnWanted['step']
}
type Settings = Pick<Session, 'config' | 'thinking_effort' | 'compaction_policy'> | undefined
/** What all layers together give, without what an agent's actions and memory add to it. */
async function effectiveIn(
  edge: CapabilityReader,
  project: string,
  agent: Agent,
  session: Settings,
  { config, author, operation, step }: Wanted,
  given?: AgentSource,
): Promise<EffectiveDefinition | Refusal> {
  const source = given ?? (await sourceOf(edge, project, agent.id))
  if (isRefusal(source)) return source
  const effective =
    config === undefined ? session?.config : clearsConfig(config) ? undefined : config
  // Toolkits and skills that a config names without saying what is in them.
  const means =
    effective?.toolkits?.some(({ actions }) => actions === undefined) ||
    effective?.skills?.some(({ body }) => body === undefined)
  const named = means ? await byName(edge, project) : undefined
  if (isRefusal(named)) return named
  const refused =
    config &&
    author &&
    refusedTools(edge, author, configuredTools(config, { source, ...(named && { named }) }))
  if (refused) return refused
  const found = effectiveDefinition({
    source,
    models: edge.world.settings.models,
    ...(named && { named }),
    ...(effective && { config: effective }),
    ...(operation && { operation }),
    ...(step && { step }),
    ...(session && {
      session: {
        ...(session.thinking_effort && { thinking_effort: session.thinking_effort }),
        ...(session.compaction_policy && { compaction_policy: session.compaction_policy }),
      },
    }),
  })
  return 'faults' in found ? refuseFields(...found.faults) : found
}
/** How a session compacts: by itself from so many tokens on, or not. A step of a run that names another model may have another threshold. */
export async function compactionOf(
  edge: CapabilityReader,
  project: string,
  session: Session,
): Promise<EffectiveDefinition['compaction'] | Refusal> {
  const agent = await findAgent(edge, project, { id: session.agent_id })
  const found = isRefusal(agent) ? agent : await effectiveIn(edge, project, agent, session, {})
  return isRefusal(found) ? found : found.compaction
}
/** The definition of a turn of an agent that is in use, in a session, which may be new. @param given the agent with what it has, when it is no agent of the project. */
export async function define(
  edge: CapabilityReader,
  project: string,
  agent: Agent,
  session: Settings,
  wanted: Wanted,
  given?: AgentSource,
): Promise<Defined | Refusal> {
  const usable = inUse(agent)
  if (isRefusal(usable)) return usable
  const found = await effectiveIn(edge, project, agent, session, wanted, given)
  if (isRefusal(found)) return found
  const { config, step } = wanted
  const organization = await edge.directory.organization()
  if (isRefusal(organization)) return organization
  const [tools, memory] = await Promise.all([
    grantedTools(edge, project, found.tools),
    remembered(edge.world, project, agent.id, found.memory_context),
  ])
  if (isRefusal(tools)) return tools
  if (isRefusal(memory)) return memory
  const separate = getOwn(organization.projects, project)?.separate_approver
  const { max_turns, max_duplicate_tool_calls } = step ?? {}
  const price =
    found.route.mode === 'managed'
      ? findModel(edge.world.settings.models, `${found.route.provider}/${found.route.model}`)?.price
      : undefined
  const { instructions, route, effort, timeout_seconds, compaction, tool_presentation, skills } =
    found
  return {
    definition: {
      agent_id: agent.id,
      agent_name: agent.name,
      scope: { org_id: edge.world.organization(), project_id: project },
      instructions,
      route,
      ...(effort !== undefined && { effort }),
      timeout_seconds,
      compaction,
      tool_presentation,
      skills,
      tools: allowed(tools, step),
      ...memory,
      ...(max_turns !== undefined && { max_generations: max_turns }),
      ...(max_duplicate_tool_calls !== undefined && { max_repeats: max_duplicate_tool_calls }),
      ...(separate && { separate_approver: true }),
      ...(price && { price }),
    },
    ...(config && { config: clearsConfig(config) ? null : config }),
  }
}
/** The tools that a step leaves: it takes away and never adds. */
const allowed = (
  tools: readonly GrantedTool[],
  { tool_names, disable_tools }: TurnWanted['step'] = {},
): readonly GrantedTool[] =>
  disable_tools ? [] : tool_names ? tools.filter(({ name }) => tool_names.includes(name)) : tools
