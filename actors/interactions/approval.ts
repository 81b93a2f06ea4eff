/**
 * Who may answer an approval that the service demands before an action is executed: a principal that may execute the action
 * itself. No agent approves, and a principal that the project excludes (the requester of the call) does not either.
 */
import { refuse, type Refusal } from '../../protocol/errors.ts'
import type { Approval } from '../../protocol/interactions/events.ts'
import { allows } from '../../protocol/access/roles.ts'
import type { Cause } from '../actor.ts'

/**
 * Why a principal cannot answer; undefined: it can.
 * @param executes the permissions of the principal to execute actions, as the edge knows them.
 */
export function refusedApproval(
  { action, excludes = [] }: Approval,
  { id, type }: Cause['principal'],
  executes: readonly string[],
): Refusal | undefined {
  if (type === 'agent') return refuse('forbidden', undefined, 'Agents do not approve actions.')
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
