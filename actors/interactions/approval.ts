/**
 * Rules on who may approve an action that requires approval. An approver must be allowed to execute
 * the action and must not be an agent. In projects that require a separate approver, the requester
 * of the call may not approve it either (`excludes`).
 */

import { allows } from '../../protocol/access/roles.ts'
import { type Refusal, refuse } from '../../protocol/errors.ts'
import type { Approval } from '../../protocol/interactions/events.ts'
import type { Cause } from '../actor.ts'

/**
 * Returns the refusal of a principal that may not answer, or undefined if it may.
 * @param executes the principal's permissions to execute actions, as the gateway resolved them.
 */
export function refuseApproval(
  { action, excludes = [] }: Approval,
  { id, type }: Cause['principal'],
  executes: readonly string[],
): Refusal | undefined {
  if (type === 'agent') return refuse('forbidden', undefined, 'Agents cannot approve actions.')
  if (excludes.includes(id))
    return refuse(
      'forbidden',
      undefined,
      'The requester of an action cannot approve it in this project.',
    )
  const permission = `actions.execute.${action}`
  return allows(new Set(executes), permission)
    ? undefined
    : refuse('permission_denied', { permission })
}
