/**
 * The assignment of toolkits and skills to agents. A request replaces a whole list. Entries that
 * remain keep the date of their assignment. A deleted toolkit or skill is removed from all agents.
 */

import type {
  AgentCapabilities,
  AgentCapabilitiesEvent,
  Equipped,
  Given,
} from '../../protocol/agents/capabilities.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input, Reply } from '../../protocol/contract.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { skills } from '../../protocol/skills/rows.ts'
import type { toolkits } from '../../protocol/toolkits/rows.ts'
import { isSystemToolkit } from '../../protocol/toolkits/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import type { ProjectState } from './state.ts'

type Rows = typeof skills & typeof toolkits
type Decided<R> = Decision<AgentCapabilitiesEvent, R>
/** Ids of the organization's skills for which the gateway has acquired a hold. */
export interface Held {
  readonly held: readonly string[]
}

const capabilitiesOf = ({ equipment }: ProjectState, agent: string): AgentCapabilities =>
  getOwn(equipment, agent) ?? { toolkits: [], skills: [] }
/** Returns the assignments with these ids. Those that exist keep their time. */
const assigned = (before: readonly Given[], ids: readonly string[], cause: Cause): Given[] =>
  ids.map((id) => before.find((one) => one.id === id) ?? { id, since: timestamp(cause.at) })
const sameOrder = (a: readonly Given[], b: readonly Given[]): boolean =>
  a.length === b.length && a.every(({ id }, index) => id === b[index]?.id)

/**
 * Sets the toolkits of an agent to exactly this list. The gateway adds the records to the reply.
 */
export function assignToolkits(
  state: ProjectState,
  { id, toolkit_ids }: Input<Rows['agent.assign_toolkits']>,
  cause: Cause,
): Decided<Reply<Rows['agent.assign_toolkits']>> {
  if (!getOwn(state.agents, id)) return refuse('not_found')
  const faults = toolkit_ids.flatMap((kit, index) =>
    isSystemToolkit(kit) || getOwn(state.toolkits, kit)
      ? []
      : [{ field: `toolkit_ids[${index}]`, message: 'there is no such toolkit', actual: kit }],
  )
  if (faults.length > 0) return refuseFields(...faults)
  const before = capabilitiesOf(state, id).toolkits
  const next = assigned(before, toolkit_ids, cause)
  return {
    events: sameOrder(before, next) ? [] : [{ type: 'toolkits.assigned', id, toolkits: next }],
    reply: {
      items: next.map(({ id: toolkit_id, since }, position) => ({
        agent_id: id,
        toolkit_id,
        position,
        created_at: since,
      })),
    },
  }
}
/**
 * Sets the skills of an agent to exactly this list. A skill of the organization is accepted if the
 * gateway has acquired a hold for it, or if the agent has it already.
 */
export function assignSkills(
  state: ProjectState,
  { id, skill_ids, held }: Input<Rows['agent.assign_skills']> & Held,
  cause: Cause,
): Decided<Reply<Rows['agent.assign_skills']>> {
  if (!getOwn(state.agents, id)) return refuse('not_found')
  const before = capabilitiesOf(state, id).skills
  const known = (skill: string) =>
    getOwn(state.skills, skill) !== undefined ||
    held.includes(skill) ||
    before.some((one) => one.id === skill)
  const faults = skill_ids.flatMap((skill, index) =>
    known(skill)
      ? []
      : [{ field: `skill_ids[${index}]`, message: 'there is no such skill', actual: skill }],
  )
  if (faults.length > 0) return refuseFields(...faults)
  const next = assigned(before, skill_ids, cause)
  return {
    events: sameOrder(before, next) ? [] : [{ type: 'skills.assigned', id, skills: next }],
    reply: {
      items: next.map(({ id: skill_id, since }, position) => ({
        agent_id: id,
        skill_id,
        enabled: true,
        position,
        created_at: since,
      })),
    },
  }
}

/**
 * Returns an agent with its assigned toolkits and skills, and the records of those toolkits and
 * skills that the project itself stores. Returns undefined if there is no such agent.
 */
export function equippedOf(
  state: ProjectState,
  { id }: { readonly id: string },
): Equipped | undefined {
  const agent = getOwn(state.agents, id)
  if (!agent) return undefined
  const { toolkits, skills } = capabilitiesOf(state, id)
  const kept = <T>(records: Readonly<Record<string, T>>, list: readonly Given[]) =>
    Object.fromEntries(
      list.flatMap((one) => {
        const record = getOwn(records, one.id)
        return record ? [[one.id, record] as const] : []
      }),
    )
  return {
    agent,
    toolkits,
    skills,
    kept: { toolkits: kept(state.toolkits, toolkits), skills: kept(state.skills, skills) },
  }
}

/** Removes a deleted toolkit or skill from all agents. */
export function removeCapability(
  state: ProjectState,
  what: keyof AgentCapabilities,
  id: string,
): ProjectState {
  for (const [agent, has] of Object.entries(state.equipment))
    if (has[what].some((one) => one.id === id))
      state.equipment[agent] = { ...has, [what]: has[what].filter((one) => one.id !== id) }
  return state
}
/** Reducers for the events of assignments. */
export const evolveCapabilities = {
  'toolkits.assigned': (
    state: ProjectState,
    { id, toolkits }: Extract<AgentCapabilitiesEvent, { type: 'toolkits.assigned' }>,
  ): ProjectState => {
    state.equipment[id] = { ...capabilitiesOf(state, id), toolkits }
    return state
  },
  'skills.assigned': (
    state: ProjectState,
    { id, skills }: Extract<AgentCapabilitiesEvent, { type: 'skills.assigned' }>,
  ): ProjectState => {
    state.equipment[id] = { ...capabilitiesOf(state, id), skills }
    return state
  },
}
