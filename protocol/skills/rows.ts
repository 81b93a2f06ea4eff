/**
 * The rows for skills of projects and of the organization. Their assignments to agents are in
 * `agents/capabilities.ts`.
 */
import { Type } from 'typebox'
import { AssignSkills, SkillAssignment } from '../agents/capabilities.ts'
import { Closed, cutting, listOf } from '../common.ts'
import { command, query } from '../contract.ts'
import { ImportSkill, Skill, SkillBody } from './schema.ts'

export const SkillUsage = Type.Object({
  skill_id: Type.String(),
  assignment_count: Type.Integer({ minimum: 0 }),
  project_count: Type.Integer({ minimum: 0 }),
  projects: Type.Array(
    Type.Object({ project_id: Type.String(), agent_count: Type.Integer({ minimum: 1 }) }),
  ),
})
const P = '/projects/:project'
const O = '/organization/skills'
const tag = 'skills'
const read = { tag, permission: 'project.view' } as const
const write = { tag, permission: 'project.edit', to: { kind: 'project' } } as const
const rule = { tag, permission: 'organization.admin', to: { kind: 'organization' } } as const

export const skills = {
  'skill.list': query(`GET ${P}/skills`, {
    ...read,
    summary: 'Skills of the project and of the organization',
    query: Closed({ include_system: Type.Optional(Type.Boolean({ default: true })), ...cutting }),
    reply: listOf(Skill),
  }),
  'skill.create': command(`POST ${P}/skills`, {
    ...write,
    summary: 'Create a skill',
    body: SkillBody,
    reply: Skill,
    status: 201,
    errors: ['conflict'],
  }),
  'skill.import': command(`POST ${P}/skills/import`, {
    ...write,
    summary: 'Create a skill from Markdown with front matter',
    body: ImportSkill,
    reply: Skill,
    status: 201,
    errors: ['conflict'],
  }),
  'skill.get': query(`GET ${P}/skills/:id`, {
    ...read,
    summary: 'One skill',
    reply: Skill,
    errors: ['not_found'],
  }),
  'skill.replace': command(`PUT ${P}/skills/:id`, {
    ...write,
    summary: 'Replace a skill as a whole',
    body: SkillBody,
    reply: Skill,
    errors: ['not_found', 'forbidden'],
  }),
  'skill.delete': command(`DELETE ${P}/skills/:id`, {
    ...write,
    summary: 'Delete a skill and remove it from all agents',
    status: 204,
    errors: ['not_found', 'forbidden'],
  }),
  'agent.skills': query(`GET ${P}/agents/:id/skill-assignments`, {
    ...read,
    summary: 'The skills of an agent, in order',
    answeredBy: 'gateway',
    query: Closed(cutting),
    reply: listOf(SkillAssignment),
    errors: ['not_found'],
  }),
  'agent.assign_skills': command(`PUT ${P}/agents/:id/skill-assignments`, {
    ...write,
    summary: 'Replace the skills of an agent',
    body: AssignSkills,
    reply: listOf(SkillAssignment),
    errors: ['not_found'],
  }),

  'skill.list_organization': query(`GET ${O}`, {
    ...read,
    summary: 'Skills of the organization',
    query: Closed(cutting),
    reply: listOf(Skill),
  }),
  'skill.create_organization': command(`POST ${O}`, {
    ...rule,
    summary: 'Create a skill for all projects',
    body: SkillBody,
    reply: Skill,
    status: 201,
    errors: ['conflict'],
  }),
  'skill.import_organization': command(`POST ${O}/import`, {
    ...rule,
    summary: 'Create a skill for all projects from Markdown with front matter',
    body: ImportSkill,
    reply: Skill,
    status: 201,
    errors: ['conflict'],
  }),
  'skill.get_organization': query(`GET ${O}/:id`, {
    ...read,
    summary: 'One skill of the organization',
    reply: Skill,
    errors: ['not_found'],
  }),
  'skill.replace_organization': command(`PUT ${O}/:id`, {
    ...rule,
    summary: 'Replace a skill of the organization; turns that start later use it',
    body: SkillBody,
    reply: Skill,
    errors: ['not_found'],
  }),
  'skill.delete_organization': command(`DELETE ${O}/:id`, {
    ...rule,
    summary: 'Delete a skill of the organization that is not assigned to an agent',
    status: 204,
    errors: ['not_found', 'skill_in_use'],
  }),
  'skill.usage': query(`GET ${O}/:id/usage`, {
    ...read,
    permission: 'organization.admin',
    summary: 'Projects that use a skill of the organization',
    answeredBy: 'gateway',
    reply: SkillUsage,
    errors: ['not_found'],
  }),
} as const
