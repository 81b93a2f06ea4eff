/**
 * Skills of the organization, and the protocol that serializes their assignment and deletion (S1,
 * S2 of protocol/agents/capabilities.ts).
 */
import type {
  SkillHoldCommands,
  SkillHoldEvent,
  SkillSeen,
} from '../../../protocol/agents/capabilities.ts'
import { refuse, refuseFields } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { SkillEvent } from '../../../protocol/skills/schema.ts'
import type { Cause, Decision } from '../../actor.ts'
import { deleteSkill, type SkillOwner } from '../skills.ts'

type Decided<R> = Decision<SkillEvent | SkillHoldEvent, R>
/**
 * Milliseconds after which a hold expires, so that it also ends if its gateway has stopped. The two
 * commands of an assignment take less time, even with the longest `BATON_DEADLINE`.
 */
const HOLD_MS = 300_000
/** Holds of assignments in progress. `grants`: number of times that each skill has been held. */
export interface SkillHolds extends SkillOwner {
  readonly holds: Record<string, { readonly skills: readonly string[]; readonly at: number }>
  readonly grants: Record<string, number>
}

/** Places a hold on skills so that they cannot be deleted while they are being assigned. */
export function holdSkills(
  { skills, holds }: SkillHolds,
  input: SkillHoldCommands['skill.hold']['input'],
): Decided<undefined> {
  const faults = input.skills.flatMap((id) =>
    getOwn(skills, id)
      ? []
      : [{ field: 'skill_ids', message: 'there is no such skill', actual: id }],
  )
  if (faults.length > 0) return refuseFields(...faults)
  return {
    events: getOwn(holds, input.id)
      ? []
      : [{ type: 'skill.held', id: input.id, skills: input.skills }],
    reply: undefined,
  }
}
/** Releases a hold. */
export const letGo = (
  { holds }: SkillHolds,
  { id }: SkillHoldCommands['skill.let_go']['input'],
): Decided<undefined> => ({
  events: getOwn(holds, id) ? [{ type: 'skill.let_go', id }] : [],
  reply: undefined,
})

/** Deletes a skill that no agent has and that no request is assigning. */
export function deleteOrganizationSkill(
  state: SkillHolds,
  { id, seen }: { readonly id: string } & SkillSeen,
  { at }: Cause,
): Decided<undefined> {
  if (!getOwn(state.skills, id)) return refuse('not_found')
  const held = Object.values(state.holds).some(
    (hold) => hold.at > at - HOLD_MS && hold.skills.includes(id),
  )
  if (seen.assigned > 0 || held || seen.grants !== (getOwn(state.grants, id) ?? 0))
    return refuse(
      'skill_in_use',
      seen.assigned > 0 ? { assignment_count: seen.assigned } : undefined,
    )
  return deleteSkill(state, id)
}

/**
 * Returns the number of times that a skill has been held. The request to delete a skill contains
 * the number that its caller read earlier. If the numbers differ, the skill was held in the
 * meantime.
 */
export const grantsOf = ({ grants }: SkillHolds, { id }: { readonly id: string }): number =>
  getOwn(grants, id) ?? 0
/** Returns the records of the given skills that exist. */
export const skillsOf = ({ skills }: SkillOwner, { ids }: { readonly ids: readonly string[] }) =>
  ids.flatMap((id) => getOwn(skills, id) ?? [])

/** Reducers for the events of holds. */
export const evolveHolds = {
  'skill.held': <S extends SkillHolds>(
    state: S,
    { id, skills }: Extract<SkillHoldEvent, { type: 'skill.held' }>,
    at: number,
  ): S => {
    for (const [other, hold] of Object.entries(state.holds))
      if (hold.at <= at - HOLD_MS) delete state.holds[other]
    state.holds[id] = { skills, at }
    for (const skill of skills) state.grants[skill] = (getOwn(state.grants, skill) ?? 0) + 1
    return state
  },
  'skill.let_go': <S extends SkillHolds>(
    state: S,
    { id }: Extract<SkillHoldEvent, { type: 'skill.let_go' }>,
  ): S => {
    delete state.holds[id]
    return state
  },
}
