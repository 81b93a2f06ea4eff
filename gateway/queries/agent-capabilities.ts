/**
 * Reads the toolkits and skills of projects and agents. The assignments of an agent are read from
 * the project's actor, and completed with the assigned records of the organization and the service.
 * They reflect the last commit and omit deleted toolkits and skills. Lists are read from views.
 */

import type {
  Given,
  SkillAssignment,
  ToolkitAssignment,
} from '../../protocol/agents/capabilities.ts'
import type { AgentSource, ByName } from '../../protocol/agents/definition.ts'
import type { Agent } from '../../protocol/agents/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Skill } from '../../protocol/skills/schema.ts'
import { systemToolkits, type Toolkit } from '../../protocol/toolkits/schema.ts'
import type { Directory } from '../directory.ts'
import type { World } from '../ports.ts'

/** The parts of a gateway or executor that these functions read from. */
export interface CapabilityReader {
  readonly world: World
  readonly directory: Directory
}

/**
 * Returns the built-in toolkits of the service. Their creation time is the creation time of the
 * project.
 */
export async function serviceToolkits(
  { world, directory }: CapabilityReader,
  project: string,
): Promise<Toolkit[] | Refusal> {
  const known = await directory.organization()
  return isRefusal(known)
    ? known
    : systemToolkits(
        world.settings.brand.toLowerCase(),
        getOwn(known.projects, project)?.created_at ?? '1970-01-01T00:00:00.000Z',
      )
}

interface Held {
  readonly agent: Agent
  readonly toolkits: readonly (Given & { readonly toolkit: Toolkit })[]
  readonly skills: readonly (Given & { readonly skill: Skill })[]
}
async function held(
  { world, directory }: CapabilityReader,
  project: string,
  id: string,
): Promise<Held | Refusal> {
  const answer = await world.ask({ project, kind: 'project', id: project }, 'equipment', {
    id,
  })
  if (isRefusal(answer)) return answer
  if (!answer)
    return refuse('not_found', { resource: 'agent' }, 'There is no such agent in this project.')
  const system = await serviceToolkits({ world, directory }, project)
  if (isRefusal(system)) return system
  const ids = answer.skills
    .map((skill) => skill.id)
    .filter((skill) => !getOwn(answer.kept.skills, skill))
  const organization = world.organization()
  const shared =
    ids.length === 0
      ? []
      : await world.ask(
          { project: organization, kind: 'organization', id: organization },
          'skills',
          { ids },
        )
  if (isRefusal(shared)) return shared
  return {
    agent: answer.agent,
    toolkits: answer.toolkits.flatMap((given) => {
      const toolkit =
        getOwn(answer.kept.toolkits, given.id) ?? system.find((one) => one.id === given.id)
      return toolkit ? [{ ...given, toolkit }] : []
    }),
    skills: answer.skills.flatMap((given) => {
      const skill =
        getOwn(answer.kept.skills, given.id) ?? shared.find((one) => one.id === given.id)
      return skill ? [{ ...given, skill }] : []
    }),
  }
}

/** Returns the toolkit assignments of an agent for the API, in the order of assignment. */
export async function toolkitAssignments(
  asking: CapabilityReader,
  project: string,
  agent_id: string,
): Promise<{ items: ToolkitAssignment[] } | Refusal> {
  const has = await held(asking, project, agent_id)
  return isRefusal(has)
    ? has
    : {
        items: has.toolkits.map(({ toolkit, since }, position) => ({
          agent_id,
          toolkit_id: toolkit.id,
          toolkit,
          position,
          created_at: since,
        })),
      }
}
/** Returns the skill assignments of an agent for the API, in the order of assignment. */
export async function skillAssignments(
  asking: CapabilityReader,
  project: string,
  agent_id: string,
): Promise<{ items: SkillAssignment[] } | Refusal> {
  const has = await held(asking, project, agent_id)
  return isRefusal(has)
    ? has
    : {
        items: has.skills.map(({ skill, since }, position) => ({
          agent_id,
          skill_id: skill.id,
          skill,
          enabled: true,
          position,
          created_at: since,
        })),
      }
}

/**
 * Returns the agent's record, toolkits and skills, from which the definition of a turn is resolved.
 * Refused with `not_found` when there is no such agent.
 */
export async function agentSource(
  asking: CapabilityReader,
  project: string,
  id: string,
): Promise<AgentSource | Refusal> {
  const has = await held(asking, project, id)
  return isRefusal(has)
    ? has
    : {
        agent: has.agent,
        toolkits: has.toolkits.map(({ toolkit }) => toolkit),
        skills: has.skills.map(({ skill }) => skill),
      }
}
/**
 * Returns all toolkits and skills that an inline definition can refer to by name. A name that
 * several records have refers to the first of them. The project's records come first, and an older
 * record comes before a newer record of the same owner.
 * @public
 */
export async function byName(asking: CapabilityReader, project: string): Promise<ByName | Refusal> {
  const [toolkits, skills] = await Promise.all([
    allToolkits(asking, project),
    allSkills(asking, project),
  ])
  if (isRefusal(toolkits)) return toolkits
  if (isRefusal(skills)) return skills
  const oldestFirst = [...skills].reverse()
  const ofProject = ({ source }: Skill) => source === 'project'
  return {
    toolkits: [...toolkits].reverse(),
    skills: [...oldestFirst.filter(ofProject), ...oldestFirst.filter((skill) => !ofProject(skill))],
  }
}

/**
 * Returns the toolkits of the service, then the toolkits of the project, newest first.
 * @param include_system whether to include the toolkits of the service.
 */
export async function allToolkits(
  asking: CapabilityReader,
  project: string,
  include_system = true,
): Promise<readonly Toolkit[] | Refusal> {
  const [system, mine] = await Promise.all([
    include_system ? serviceToolkits(asking, project) : [],
    asking.world.view(project, 'toolkit.list', {}),
  ])
  if (isRefusal(system)) return system
  return isRefusal(mine) ? mine : [...system, ...mine.items]
}
/**
 * Returns the skills of the project, then the skills of the organization, each newest first. The
 * service has no skills.
 */
export async function allSkills(
  { world }: CapabilityReader,
  project: string,
): Promise<readonly Skill[] | Refusal> {
  const [mine, shared] = await Promise.all([
    world.view(project, 'skill.list', {}),
    world.view(world.organization(), 'skill.list_organization', {}),
  ])
  if (isRefusal(mine)) return mine
  return isRefusal(shared) ? shared : [...mine.items, ...shared.items]
}
