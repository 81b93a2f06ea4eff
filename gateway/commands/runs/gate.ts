/**
 * Preparation of commands that end the wait of a step by hand. The gate of a check is an approval,
 * so only a caller who could answer it may end its wait. The run stores the targets of the gate; the
 * gateway knows the roles of the caller.
 */
import type { GateExtra } from '../../../protocol/access/directory.ts'
import { api } from '../../../protocol/api.ts'
import type { Caller } from '../../auth/authenticate.ts'
import { authorize } from '../../auth/authorize.ts'
import { checkScope, rolesOf } from '../../auth/people.ts'
import type { Edge } from '../../call.ts'
import type { Prepare } from '../../prepare.ts'

/** Returns the caller's roles, or the refusal of every answer by this caller. */
export async function gateExtra(edge: Edge, project: string, caller: Caller): Promise<GateExtra> {
  const { permission } = api['interaction.respond'].shape
  const refused =
    authorize(edge.world.settings.brand, permission, caller) ??
    (await checkScope(edge, project, caller))
  return { responds: refused ?? (await rolesOf(edge, project, caller)) }
}

const prepareGate: Prepare = async (edge, { project, caller }) =>
  project ? { input: { ...(await gateExtra(edge, project.id, caller)) } } : {}

export const gatePreparations: Readonly<Record<string, Prepare>> = {
  'run.resume': prepareGate,
  // A signal by name is never an answer to a gate.
  'run.signal': (edge, call, ...rest) =>
    call.body['step_key'] === undefined ? {} : prepareGate(edge, call, ...rest),
}
