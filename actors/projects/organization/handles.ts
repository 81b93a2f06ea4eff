/** Claims on workflow handles. The rules are in protocol/projects/configuration.ts. */

import { refuse } from '../../../protocol/errors.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { ClaimEvent, OrganizationCommands } from '../../../protocol/projects/configuration.ts'
import { takenHandle } from '../../../protocol/workflows/handle.ts'
import type { Cause, Decision } from '../../actor.ts'
import type { OrganizationState } from './state.ts'

type In<N extends keyof OrganizationCommands> = OrganizationCommands[N]['input']
type Decided = Decision<ClaimEvent, undefined>
const nothing: Decided = { events: [], reply: undefined }

/**
 * Returns one of the claims on the handle, which all belong to the same project, or undefined if
 * the handle is not claimed.
 */
export const holderOf = ({ claims }: OrganizationState, handle: string) =>
  Object.values(claims).find((claim) => claim.handle === handle)

/** Grants the handle to the project for this workflow, unless another project holds it. */
export function reserve(
  state: OrganizationState,
  { id, handle, project }: In<'handle.reserve'>,
): Decided {
  const home = getOwn(state.projects, project)
  if (!home || home.deleted) return refuse('not_found')
  if (getOwn(state.claims, id)) return nothing
  const holder = holderOf(state, handle)
  return holder && holder.project !== project
    ? takenHandle(handle)
    : { events: [{ type: 'handle.reserved', id, handle, project }], reply: undefined }
}

/** Releases a claim. */
export const release = ({ claims }: OrganizationState, { id }: In<'handle.release'>): Decided =>
  getOwn(claims, id) ? { events: [{ type: 'handle.released', id }], reply: undefined } : nothing

/**
 * Returns an event for each claim that is due. The event asks the claim's project whether the
 * workflow exists. If it does not exist, the project releases the claim. Otherwise, the project
 * does not reply.
 */
export const question = ({ claims }: OrganizationState, { at }: Cause): ClaimEvent[] =>
  Object.entries(claims).flatMap(([id, { due, project }]): ClaimEvent[] =>
    due !== undefined && due <= at ? [{ type: 'handle.questioned', id, project }] : [],
  )

/**
 * Returns the time at which the next claim is due, in Unix milliseconds. Returns undefined if no
 * claim will be due.
 */
export function nextQuestion({ claims }: OrganizationState): number | undefined {
  let next: number | undefined
  for (const { due } of Object.values(claims))
    if (due !== undefined && (next === undefined || due < next)) next = due
  return next
}
