/** Decisions on skills, shared by projects and the organization. Names need not be unique. */

import { timestamp } from '../../protocol/common.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { reservedTags } from '../../protocol/naming.ts'
import { refuseBeyondLimit } from '../../protocol/projects/limits.ts'
import type { Skill, SkillBody, SkillEvent } from '../../protocol/skills/schema.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeOf } from '../configuration.ts'

type Decided<R> = Decision<SkillEvent, R>
/** The state of an actor that stores skills. */
export interface SkillOwner {
  readonly skills: Readonly<Record<string, Skill>>
}
interface Options {
  readonly brand: string
  readonly source: 'project' | 'organization'
}

/** Creates a skill. Refuses reserved tags, and a skill beyond the limit. */
export function createSkill(
  { brand, source }: Options,
  { skills }: SkillOwner,
  input: SkillBody,
  cause: Cause,
): Decided<Skill> {
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const full = refuseBeyondLimit('skill', Object.keys(skills).length)
  if (full) return full
  const now = timestamp(cause.at)
  const { name, instructions, description, allowed_tools, tags } = input
  const base: Skill = {
    id: cause.mint('skill'),
    name,
    source,
    instructions,
    created_by: cause.principal.id,
    created_at: now,
    updated_at: now,
  }
  const skill = changeOf<Skill>(base, { description, allowed_tools, tags }, cause.at)?.next ?? base
  return { events: [{ type: 'skill.created', id: skill.id, skill }], reply: skill }
}

/**
 * Replaces a skill as a whole: fields that the request omits are removed. The audit log contains
 * only the lengths of the instructions.
 */
export function replaceSkill(
  { brand }: Options,
  { skills }: SkillOwner,
  input: SkillBody & { readonly id: string },
  cause: Cause,
): Decided<Skill> {
  const skill = getOwn(skills, input.id)
  if (!skill) return refuse('not_found')
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const { name, instructions, description = '', allowed_tools = [], tags = {} } = input
  const change = changeOf<Skill>(
    skill,
    { name, instructions, description, allowed_tools, tags },
    cause.at,
  )
  if (!change) return { events: [], reply: skill }
  const { instructions: text, ...changes } = change.changes
  const length = (value: unknown) => ({ characters: String(value ?? '').length })
  const updated_by = cause.principal.id
  return {
    events: [
      {
        type: 'skill.updated',
        id: skill.id,
        skill: { ...change.patch, updated_by },
        changes: text
          ? { ...changes, instructions: { from: length(text.from), to: length(text.to) } }
          : changes,
      },
    ],
    reply: { ...change.next, updated_by },
  }
}

/** Deletes a skill. The organization checks first that the skill is not in use. */
export function deleteSkill({ skills }: SkillOwner, id: string): Decided<undefined> {
  const skill = getOwn(skills, id)
  return skill
    ? { events: [{ type: 'skill.deleted', id, name: skill.name }], reply: undefined }
    : refuse('not_found')
}
