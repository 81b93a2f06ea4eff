/**
 * Self-access: an agent that uses a key of its principal may send input to itself and cancel its
 * own work. The permission to invoke agents is not required. Rows declare whether they permit
 * self-access.
 */
import type { Shape } from '../../protocol/contract.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Caller } from '../auth/authenticate.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { standingOf } from './session-id.ts'

/**
 * Returns whether the operation permits self-access and the caller is an agent. `ownAgent` checks
 * the target of the call.
 */
export const isSelfAccess = (
  { selfAccess }: Pick<Shape, 'selfAccess'>,
  { principal }: Caller,
): boolean => principal.type === 'agent' && selfAccess === true
/**
 * Returns whether the target of a call is the agent that makes the call; false if a lookup fails.
 */
export async function ownAgent(edge: Edge, call: Call): Promise<boolean> {
  const { id } = call.caller.principal
  const project = scopeId(edge, call)
  const { session_id } = call.slots
  if (session_id !== undefined) {
    if (!isId(session_id, 'agent_session')) return false
    const known = await standingOf(edge, project, session_id)
    return !isRefusal(known) && known.session?.agent_id === id
  }
  const ref = call.body['agent_ref'] as { readonly id?: string; readonly name?: string } | undefined
  if (ref?.id !== undefined) return ref.id === id
  const known = await edge.directory.project(project)
  return !isRefusal(known) && getOwn(known.agents, id)?.name === ref?.name
}
