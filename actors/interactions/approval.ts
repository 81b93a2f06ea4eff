/**
 * The rule for answering an approval that the service requires before it executes an action. A
 * principal may approve if it may execute the action itself. Agents never approve, nor do
 * principals that the project excludes (the requester of the call).
 */

import { allows } from '../../protocol/access/roles.ts'
import { type Refusal, refuse } from '../../protocol/errors.ts'
import type { Approval } from '../../protocol/interactions/events.ts'
import type { Cause } from '../actor.ts'

/**
 * The refusal of a principal that cannot answer; undefined: it can.
 * @param executes the principal's permissions to execute actions, as the gateway resolved them.
 */
export function refusedApproval(
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
