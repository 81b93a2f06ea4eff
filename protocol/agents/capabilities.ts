/** The capabilities of agents: assigned toolkits and skills, in the caller's order. */
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
/** Changes of assignments; `id` is the agent's id. */
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
 * The project's reply to the read `equipment`: the agent, its assignments, and those of the
 * assigned records that the project itself stores.
 */
export interface Equipped extends AgentCapabilities {
  readonly agent: Agent
  readonly kept: {
    readonly toolkits: Readonly<Record<string, Toolkit>>
    readonly skills: Readonly<Record<string, Skill>>
  }
}

/**
 * Deletion of an organization's skill while projects may assign it. Only the organization decides:
 * S1. The edge places a hold before it assigns skills of the organization. The organization rejects
 *     holds on unknown skills and counts the holds it grants. The edge releases the hold after the
 *     assignment; the hold of a crashed edge expires.
 * S2. To delete a skill, the edge reads the grant count, then the number of agents that have the
 *     skill, then requests the deletion with both numbers. The organization rejects it while an
 *     agent has the skill, a hold exists, or the grant count has changed. So no agent has a deleted
 *     skill.
 */
export type SkillHoldEvent =
  | (Event & {
      readonly type: 'skill.held'
      readonly id: string
      readonly skills: readonly string[]
    })
  | (Event & { readonly type: 'skill.let_go'; readonly id: string })
/** Internal commands of the organization for these holds. `id` is the id of the hold. */
export type SkillHoldCommands = {
  'skill.hold': { input: { id: string; skills: readonly string[] }; reply: undefined }
  'skill.let_go': { input: { id: string }; reply: undefined }
}
/** The counts that the edge read before it requests the deletion of an organization's skill. */
export interface SkillSeen {
  readonly seen: { readonly grants: number; readonly assigned: number }
}
