/**
 * Resolves the agent and the definition of a turn before the command that starts the turn is sent.
 * The rules for merging the layers of a definition are in protocol/agents/definition.ts. Tools are
 * resolved only here: the session receives the list of granted tools.
 */

import type { OrganizationDirectory, ProjectDirectory } from '../../protocol/access/directory.ts'
import {
  type AgentSource,
  configuredTools,
  type EffectiveDefinition,
  effectiveDefinition,
} from '../../protocol/agents/definition.ts'
import { clearsConfig, type InlineConfig } from '../../protocol/agents/inline.ts'
import { findModel } from '../../protocol/agents/models.ts'
import type { Agent } from '../../protocol/agents/schema.ts'
import { isEnvironmentAction } from '../../protocol/environments/actions.ts'
import { boundEnvironment } from '../../protocol/environments/commands.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Bundle, TriggerKind } from '../../protocol/resolver/callout.ts'
import type { TurnWanted } from '../../protocol/runs/turns.ts'
import type { Session } from '../../protocol/sessions/schema.ts'
import type {
  Defined,
  GrantedTool,
  TurnEnvironment,
} from '../../protocol/sessions/turns/definition.ts'
import type { Caller } from '../auth/authenticate.ts'
import { refuseTools } from '../commands/actions-named.ts'
import { bundleOf } from '../commands/resolver/resolve.ts'
import { agentSource, byName, type CapabilityReader } from '../queries/agent-capabilities.ts'
import { describeTables } from './tables.ts'
import { grantedTools, memoryContext } from './tools.ts'

/**
 * Cache of agent sources. They depend only on configuration, so each is valid as long as the
 * directory objects from which it was derived are cached.
 */
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

/**
 * Finds the agent that a reference identifies, whether it is active or not. Refused with
 * `not_found` when there is no such agent.
 * @param field path of the reference in the request, for the refusal.
 */
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
/** Returns the agent if it is active, otherwise the refusal `agent_inactive`. */
export const requireActive = (agent: Agent): Agent | Refusal =>
  agent.status === 'active' ? agent : refuse('agent_inactive', { agent_id: agent.id })
/**
 * Finds the active agent that a reference identifies. Returns the refusal `not_found` when there is
 * no such agent, and `agent_inactive` when the agent is not active.
 */
export async function agentOf(
  asking: CapabilityReader,
  project: string,
  ref: { readonly id?: string; readonly name?: string },
): Promise<Agent | Refusal> {
  const agent = await findAgent(asking, project, ref)
  return isRefusal(agent) ? agent : requireActive(agent)
}

/** The fields of a request that affect the definition of its turn. */
export interface DefinitionRequest {
  readonly config?: InlineConfig
  /**
   * The permissions of the caller that sent `config`. The caller needs a permission for each tool
   * in `config`. Absent when `config` need not be checked.
   */
  readonly author?: Caller['permissions']
  readonly operation?: { readonly timeout_seconds?: number }
  /** The settings of the step, for a turn of a run. */
  readonly step?: TurnWanted['step']
  /**
   * The environment of a turn of a run, if it is not the agent's own. With null, the turn has no
   * tools that work in an environment.
   */
  readonly environment?: TurnEnvironment | null
  /** The kind of trigger that starts the turn. Without one, the resolver is not called. */
  readonly trigger?: TriggerKind
  /** The definition from the resolver, if it is already known. */
  readonly bundle?: Bundle
}
/** Returns whether a definition refers to toolkits or skills by name. */
const refersByName = ({ toolkits, skills }: InlineConfig = {}): boolean =>
  toolkits?.some(({ actions }) => actions === undefined) === true ||
  skills?.some(({ body }) => body === undefined) === true
/** The agent and the session of a turn. */
export interface TurnSubject {
  readonly project: string
  readonly agent: Agent
  /** Settings of the session, which need not exist yet. */
  readonly session?: Pick<Session, 'config' | 'thinking_effort' | 'compaction_policy'> | undefined
  /** The agent's source, for an agent that does not belong to the project. */
  readonly source?: AgentSource | undefined
}
/**
 * Returns the definition that results from all layers, before its tools and the agent's memory are
 * resolved.
 */
async function layeredDefinition(
  edge: CapabilityReader,
  { project, agent, session, source: given }: TurnSubject,
  { config, author, operation, step, trigger, bundle: known }: DefinitionRequest,
): Promise<EffectiveDefinition | Refusal> {
  const source = given ?? (await sourceOf(edge, project, agent.id))
  if (isRefusal(source)) return source
  const effective =
    config === undefined ? session?.config : clearsConfig(config) ? undefined : config
  const ofConfig = refersByName(effective) ? await byName(edge, project) : undefined
  if (isRefusal(ofConfig)) return ofConfig
  const refused =
    config &&
    author &&
    refuseTools(
      edge,
      author,
      configuredTools(config, { source, ...(ofConfig && { named: ofConfig }) }),
    )
  if (refused) return refused
  const bundle = known ?? (given ? undefined : await bundleOf(edge, project, agent, trigger))
  if (isRefusal(bundle)) return bundle
  const named = ofConfig ?? (refersByName(bundle?.definition) && (await byName(edge, project)))
  if (isRefusal(named)) return named
  const found = effectiveDefinition({
    source,
    models: edge.world.settings.models,
    ...(named && { named }),
    ...(bundle && { bundle: bundle.definition }),
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
/**
 * Returns the definition of the next turn of a session, for a turn that a message starts. A turn of
 * a run may have a different definition, for example because its step specifies another model.
 */
export async function definitionOf(
  edge: CapabilityReader,
  project: string,
  session: Session,
): Promise<EffectiveDefinition | Refusal> {
  const agent = await findAgent(edge, project, { id: session.agent_id })
  return isRefusal(agent) ? agent : layeredDefinition(edge, { project, agent, session }, {})
}
/**
 * Returns the id of an agent's environment, whether the environment exists or not. Returns
 * undefined if no tool of the definition works in an environment.
 */
export async function agentWorkspace(
  edge: CapabilityReader,
  project: string,
  agent_id: string,
  { tools }: EffectiveDefinition,
): Promise<string | Refusal | undefined> {
  const granted = await grantedTools(edge, project, tools)
  if (isRefusal(granted)) return granted
  return granted.some(({ name }) => isEnvironmentAction(name))
    ? boundEnvironment(agent_id)
    : undefined
}
/**
 * Resolves the definition of a turn. Refused when the agent is inactive or the definition is
 * invalid.
 */
export async function defineTurn(
  edge: CapabilityReader,
  subject: TurnSubject,
  wanted: DefinitionRequest,
): Promise<Defined | Refusal> {
  const { project, agent } = subject
  const usable = requireActive(agent)
  if (isRefusal(usable)) return usable
  const found = await layeredDefinition(edge, subject, wanted)
  if (isRefusal(found)) return found
  const { config, step } = wanted
  const organization = await edge.directory.organization()
  if (isRefusal(organization)) return organization
  const [tools, memory] = await Promise.all([
    grantedTools(edge, project, found.tools),
    memoryContext(edge.world, project, agent.id, found.memory_context),
  ])
  if (isRefusal(tools)) return tools
  if (isRefusal(memory)) return memory
  const allowedTools = allowed(tools, step).filter(
    ({ name }) => wanted.environment !== null || !isEnvironmentAction(name),
  )
  const environment = environmentOf(allowedTools, agent, wanted)
  const usableTools = environment
    ? allowedTools.map((tool) =>
        isEnvironmentAction(tool.name) ? { ...tool, environment_id: environment.id } : tool,
      )
    : allowedTools
  const tables = await describeTables(edge.world, project, usableTools)
  if (isRefusal(tables)) return tables
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
      tools: usableTools,
      ...memory,
      ...tables,
      ...(environment && { environment }),
      ...(max_turns !== undefined && { max_generations: max_turns }),
      ...(max_duplicate_tool_calls !== undefined && { max_repeats: max_duplicate_tool_calls }),
      ...(separate && { separate_approver: true }),
      ...(price && { price }),
    },
    ...(config && { config: clearsConfig(config) ? null : config }),
  }
}
/**
 * Returns the environment for the tools that work in an environment: the environment that the run
 * specifies, or else the environment of the agent. Returns undefined when no tool works in an
 * environment. The first call to such a tool creates the environment.
 */
function environmentOf(
  tools: readonly GrantedTool[],
  { id, principal_id }: Agent,
  { environment }: DefinitionRequest,
): TurnEnvironment | undefined {
  if (!tools.some(({ name }) => isEnvironmentAction(name))) return undefined
  return (
    environment ?? {
      id: boundEnvironment(id),
      use: {
        holder: { kind: 'agent', id },
        binding: { mode: 'agent', owner_id: id, owned_by: principal_id },
      },
    }
  )
}
/** Returns the tools that remain in a turn of a step. A step can only remove tools. */
const allowed = (
  tools: readonly GrantedTool[],
  { tool_names, disable_tools }: TurnWanted['step'] = {},
): readonly GrantedTool[] =>
  disable_tools ? [] : tool_names ? tools.filter(({ name }) => tool_names.includes(name)) : tools
