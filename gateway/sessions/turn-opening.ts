/**
 * Looks up the agent, the session and the definition of a turn of a run. An executor performs the
 * lookups and sends the result to the run, which then opens the turn. Nothing is written here.
 */
import type { AgentSource } from '../../protocol/agents/definition.ts'
import type { Agent } from '../../protocol/agents/schema.ts'
import { channelOfKey } from '../../protocol/channels/exchange.ts'
import { timestamp } from '../../protocol/common.ts'
import { boundEnvironment } from '../../protocol/environments/commands.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { TurnDefined, TurnWanted } from '../../protocol/runs/turns.ts'
import { isPrivate } from '../../protocol/sessions/visibility.ts'
import { bundleOf } from '../commands/resolver/resolve.ts'
import type { CapabilityReader } from '../queries/agent-capabilities.ts'
import { agentOf, type DefinitionRequest, defineTurn } from './definition.ts'
import { locateSession } from './session-id.ts'

const REVIEWER =
  'You are a reviewer. You are given a statement about some work, and sometimes evidence. ' +
  'Judge only whether the statement holds, from the evidence alone: what the evidence does not show does not hold. ' +
  'Give a reason that names what decided it.'
/**
 * Returns the service's own reviewer, which judges the assertions of check steps: an agent without
 * tools or memory.
 */
function reviewer({ world }: CapabilityReader): AgentSource {
  const id = `${world.settings.brand.toLowerCase()}-reviewer`
  const at = timestamp(0)
  return {
    agent: {
      id,
      principal_id: id,
      name: id,
      status: 'active',
      system_prompt: REVIEWER,
      memory_context: { mode: 'off' },
      created_at: at,
      updated_at: at,
    },
    toolkits: [],
    skills: [],
  }
}

/** Finds an active agent by its id or its name. */
async function named(
  asking: CapabilityReader,
  project: string,
  text: string,
): ReturnType<typeof agentOf> {
  const known = await asking.directory.project(project)
  if (isRefusal(known)) return known
  return agentOf(asking, project, getOwn(known.agents, text) ? { id: text } : { name: text })
}

/**
 * Returns the field `environment`: the environment that the run specifies for the turn, or null if
 * the run rules out an environment. Omits the field if the run specifies neither.
 */
function environmentFor(
  { id, principal_id }: Pick<Agent, 'id' | 'principal_id'>,
  { environment, agent_environment, no_environment }: TurnWanted,
): Pick<DefinitionRequest, 'environment'> {
  if (no_environment) return { environment: null }
  if (environment) return { environment }
  if (!agent_environment) return {}
  const { holder, passive, ...wishes } = agent_environment
  return {
    environment: {
      id: boundEnvironment(id),
      use: {
        holder,
        binding: { mode: 'agent', owner_id: id, owned_by: principal_id, ...wishes },
        ...(passive && { passive }),
      },
    },
  }
}

/**
 * Returns the session and the definition of a turn of a run. Returns the refusal `forbidden` if the
 * starter of the run may not read the session.
 */
export async function turnFor(
  asking: CapabilityReader,
  project: string,
  wanted: TurnWanted,
): Promise<TurnDefined | Refusal> {
  const { turn_id, agent: text, asker = '', session, step } = wanted
  const given = text === undefined ? reviewer(asking) : undefined
  const agent = given?.agent ?? (await named(asking, project, text ?? ''))
  if (isRefusal(agent)) return agent
  const { scope, ref_id, name, title, visibility, compaction_policy } = session
  const channel = scope === 'agent' ? channelOfKey(name) : undefined
  // A run may use the session of a channel only if the starter of the run may read the channel.
  const readable =
    channel === undefined
      ? undefined
      : await asking.world.view(project, 'channel_access', {
          id: channel,
          viewer: { id: asker, admin: false },
        })
  if (isRefusal(readable))
    return readable.refused === 'not_found'
      ? refuse(
          'forbidden',
          { session: name },
          'The session belongs to a channel that the starter of the run may not read.',
        )
      : readable
  const located = await locateSession(asking, {
    project,
    agent,
    seed: { session_key: name },
    ofRun: scope === 'loop' ? { scope_ref_id: ref_id } : {},
  })
  if (isRefusal(located)) return located
  if (scope === 'agent' && located.session && isPrivate(located.session)) {
    const access = await asking.world.view(project, 'session_access', {
      of: { session_id: located.session.id },
      viewer: { id: asker, admin: false },
    })
    if (isRefusal(access)) return access
    if (access.closed)
      return refuse(
        'forbidden',
        { session: name },
        'The session is private, and the starter of the run may not read it.',
      )
  }
  const kept = wanted.bundle?.agent_id === agent.id ? wanted.bundle : undefined
  const bundle =
    kept ?? (given ? undefined : await bundleOf(asking, project, agent, wanted.trigger ?? 'api'))
  if (isRefusal(bundle)) return bundle
  const defined = await defineTurn(
    asking,
    {
      project,
      agent,
      session: located.session ?? { ...(compaction_policy && { compaction_policy }) },
      source: given,
    },
    { step, ...environmentFor(agent, wanted), ...(bundle && { bundle }) },
  )
  if (isRefusal(defined)) return defined
  return {
    turn_id,
    session_id: located.id,
    place: located.location,
    definition: defined.definition,
    seed: {
      ...(title !== undefined && { title }),
      ...(visibility && { visibility }),
      ...(compaction_policy && { compaction_policy }),
    },
    ...(bundle &&
      !kept && {
        bundle: {
          agent_id: agent.id,
          agent_name: agent.name,
          digest: bundle.digest,
          definition: bundle.definition,
        },
      }),
  }
}
