/**
 * Schemas and events for the assignment of toolkits and skills to agents, and for the holds that
 * prevent the deletion of an organization's skill while it is being assigned. An agent's
 * assignments are in the order in which the caller listed them. The rows are in `toolkits/rows.ts`
 * and `skills/rows.ts`.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import { Skill, skillLimits } from '../skills/schema.ts'
import { Toolkit, toolkitLimits } from '../toolkits/schema.ts'
import type { Agent } from './schema.ts'

export const ToolkitAssignment = Type.Object({
  agent_id: Type.String(),
  toolkit_id: Type.String(),
  toolkit: Type.Optional(Toolkit),
  position: Type.Integer({ minimum: 0 }),
  created_at: Timestamp,
})
export type ToolkitAssignment = Static<typeof ToolkitAssignment>
export const SkillAssignment = Type.Object({
  agent_id: Type.String(),
  skill_id: Type.String(),
  skill: Type.Optional(Skill),
  enabled: Type.Boolean(),
  position: Type.Integer({ minimum: 0 }),
  created_at: Timestamp,
})
export type SkillAssignment = Static<typeof SkillAssignment>
export const AssignToolkits = Closed({
  toolkit_ids: Type.Array(Id, { maxItems: toolkitLimits.assigned, uniqueItems: true }),
})
export const AssignSkills = Closed({
  skill_ids: Type.Array(Id, { maxItems: skillLimits.assigned, uniqueItems: true }),
})

/** A toolkit or skill that is assigned to an agent. */
export interface Given {
  readonly id: string
  /** The timestamp of the assignment. */
  readonly since: string
}
/**
 * The assignments of one agent. Ids may also refer to toolkits of the service and skills of the
 * organization.
 */
export interface AgentCapabilities {
  readonly toolkits: readonly Given[]
  readonly skills: readonly Given[]
}
/**
 * Events of a project about assignments. Each replaces the whole list. `id` is the id of the agent.
 */
export type AgentCapabilitiesEvent =
  | (Event & {
      readonly type: 'toolkits.assigned'
      readonly id: string
      readonly toolkits: readonly Given[]
    })
  | (Event & {
      readonly type: 'skills.assigned'
      readonly id: string
      readonly skills: readonly Given[]
    })

/**
 * The reply to the project's owner query `equipment`: the agent, its assignments, and the assigned
 * records that the project itself stores (`kept`). Toolkits of the service and skills of the
 * organization are not in `kept`.
 */
export interface Equipped extends AgentCapabilities {
  readonly agent: Agent
  readonly kept: {
    readonly toolkits: Readonly<Record<string, Toolkit>>
    readonly skills: Readonly<Record<string, Skill>>
  }
}

/**
 * Events of the holds that prevent the deletion of an organization's skill while it is being
 * assigned in a project. Only the organization decides whether the skill is deleted, as follows:
 * S1. The gateway places a hold before it assigns skills of the organization. The organization
 *     rejects holds on unknown skills and counts the holds that it grants (`grants`). The gateway
 *     releases the hold after the assignment. A hold expires after five minutes, in case its
 *     gateway has crashed.
 * S2. To delete a skill, the gateway reads `grants`, then the number of agents that have the skill,
 *     and then requests the deletion with both numbers. The organization rejects the deletion if an
 *     agent has the skill, if a hold on it exists, or if `grants` has changed since it was read, so
 *     no agent has a deleted skill.
 */
export type SkillHoldEvent =
  | (Event & {
      readonly type: 'skill.held'
      readonly id: string
      readonly skills: readonly string[]
    })
  | (Event & { readonly type: 'skill.let_go'; readonly id: string })
/**
 * Internal commands of the organization for holds on skills. `id` is the id of the hold.
 * `skill.hold` is refused with `bad_request` when a skill does not exist.
 */
export type SkillHoldCommands = {
  'skill.hold': { input: { id: string; skills: readonly string[] }; reply: undefined }
  'skill.let_go': { input: { id: string }; reply: undefined }
}
/** The numbers that the gateway read before it requested the deletion of a skill (S2). */
export interface SkillSeen {
  readonly seen: { readonly grants: number; readonly assigned: number }
}
