/**
 * Skills: instructions that an agent loads when a turn needs them. This file contains their
 * schemas, limits and events. The `allowed_tools` of a loaded skill restrict the tools for the rest
 * of the turn. A skill never adds a tool. Projects and the organization each have their own skills.
 */
import { type Static, Type } from 'typebox'
import { Closed, Tags, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import { toolkitLimits } from '../toolkits/schema.ts'
import type { Changes } from '../workflows/rows.ts'

/**
 * Limits of skills. `allowed`: number of entries in `allowed_tools`. `skills`: number of skills of
 * one project or of the organization. `assigned`: number of skills of one agent. `import`: length
 * of an imported document in characters. The others are also lengths in characters.
 */
export const skillLimits = {
  name: 80,
  description: 1000,
  instructions: 65_536,
  allowed: 200,
  skills: 2000,
  assigned: 32,
  import: 131_072,
} as const

const AllowedTools = Type.Array(
  Type.String({ minLength: 1, maxLength: toolkitLimits.selector, pattern: '^\\S+$' }),
  {
    maxItems: skillLimits.allowed,
    description:
      'Tools that the skill allows: names, groups and patterns in the form of toolkit selectors; ' +
      'empty: no restriction',
  },
)
export const Skill = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.Optional(Type.String()),
  source: Type.Enum(['system', 'organization', 'project']),
  instructions: Type.String(),
  allowed_tools: Type.Optional(AllowedTools),
  tags: Type.Optional(Tags),
  created_by: Type.Optional(Type.String()),
  updated_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Skill = Static<typeof Skill>
/** The body of a request that creates or replaces a skill. */
export const SkillBody = Closed({
  name: Type.String({ minLength: 1, maxLength: skillLimits.name }),
  instructions: Type.String({ minLength: 1, maxLength: skillLimits.instructions }),
  description: Type.Optional(Type.String({ maxLength: skillLimits.description })),
  allowed_tools: Type.Optional(AllowedTools),
  tags: Type.Optional(Tags),
})
export type SkillBody = Static<typeof SkillBody>
/**
 * The body of an import: Markdown that may begin with front matter. The name in the request takes
 * precedence over the name in the front matter.
 */
export const ImportSkill = Closed({
  content: Type.String({ minLength: 1, maxLength: skillLimits.import }),
  name: Type.Optional(Type.String({ minLength: 1, maxLength: skillLimits.name })),
})

/** Events of a project about its skills, and of the organization about its own skills. */
export type SkillEvent =
  | (Event & { readonly type: 'skill.created'; readonly id: string; readonly skill: Skill })
  | (Event & {
      readonly type: 'skill.updated'
      readonly id: string
      readonly skill: Patch<Skill>
      readonly changes: Changes
    })
  /** The skill is deleted together with its assignments to agents of the project. */
  | (Event & { readonly type: 'skill.deleted'; readonly id: string; readonly name: string })
