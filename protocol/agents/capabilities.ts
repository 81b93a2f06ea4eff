/** What agents are given: toolkits and skills, in the order that somebody chose. */
import { Type, type Static } from 'typebox'
import type { Agent } from './schema.ts'
import { Closed, Id, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import { Skill, skillLimits } from '../skills/schema.ts'
import { Toolkit, toolkitLimits } from '../toolkits/schema.ts'

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

/** Something given to an agent. */
export interface Given {
  readonly id: string
  /** Since when, as a timestamp. */
  readonly since: string
}
/** What one agent has. Ids may be those of toolkits of the service and of skills of the organization. */
export interface Equipment {
  readonly toolkits: readonly Given[]
  readonly skills: readonly Given[]
}
/** `id` is the agent's. */
export type EquipmentEvent =
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

/** What a project answers to the read `equipment`: the agent with what it was given, and the records that the project itself keeps of that. */
export interface Equipped extends Equipment {
  readonly agent: Agent
  readonly kept: {
    readonly toolkits: Readonly<Record<string, Toolkit>>
    readonly skills: Readonly<Record<string, Skill>>
  }
}

/**
 * Deleting a skill of the organization while projects assign it. The organization decides alone:
 * S1. Whoever assigns skills of the organization holds them first; the organization refuses what it does not have, and counts
 *     what it grants. When the assignment is answered, the hold is let go; one whose edge died ends by itself.
 * S2. Whoever deletes a skill reads its grants, then who has it, then asks for the deletion with both. It is refused while
 *     somebody has the skill or holds it, or when it was granted again meanwhile. So no agent has a skill that is gone.
 */
export type SkillHoldEvent =
  | (Event & {
      readonly type: 'skill.held'
      readonly id: string
      readonly skills: readonly string[]
    })
  | (Event & { readonly type: 'skill.let_go'; readonly id: string })
/** Internal commands of the organization for this. `id` names the hold. */
export type SkillHoldCommands = {
  'skill.hold': { input: { id: string; skills: readonly string[] }; reply: undefined }
  'skill.let_go': { input: { id: string }; reply: undefined }
}
/** What the edge found out before it asks for the deletion of a skill of the organization. */
export interface SkillSeen {
  readonly seen: { readonly grants: number; readonly assigned: number }
}
