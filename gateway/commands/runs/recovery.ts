/**
 * Preparations of the commands that recover a run: a retry of a failed run, and the resumption of a
 * suspended one.
 */
import type { RecoverExtra } from '../../../protocol/access/directory.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import type { Caller } from '../../auth/authenticate.ts'
import type { Edge } from '../../call.ts'
import type { Prepare } from '../../prepare.ts'
import { refuseActions } from '../actions-named.ts'
import { gateExtra } from './gate.ts'

/**
 * Returns the facts that decide whether a caller may recover a run. For a run of a loop, these are
 * the current version of the loop, and its daily budget if it is spent. A recovery of an inline
 * spec or of a direct call is a start, so the caller needs the permission to execute its actions.
 * Returns an empty object when the run has a stored workflow or does not exist.
 */
export async function recoveryExtra(
  edge: Pick<Edge, 'world'>,
  caller: Caller,
  project: string,
  run_id: string,
): Promise<RecoverExtra | Refusal> {
  const { world } = edge
  const address = { project, kind: 'run', id: run_id } as const
  const run = await world.ask(address, 'get', {})
  if (isRefusal(run)) return run
  if (!run) return {}
  if (!('loop_id' in run)) {
    if (run.definition_id !== '') return {}
    const spec = await world.ask(address, 'inline_spec', {})
    if (isRefusal(spec)) return spec
    const refused_start = spec ? refuseActions(edge, caller, spec, 'spec') : undefined
    return refused_start ? { refused_start } : {}
  }
  const version = await world.ask({ project, kind: 'loop', id: run.loop_id }, 'version', {})
  if (isRefusal(version)) return version
  if (!version) return {}
  const { number, spent_budget } = version
  return { current_version: number, ...(spent_budget && { spent_budget }) }
}
const retry: Prepare = async (edge, { project, slots, caller }) => {
  const id = slots['id'] ?? ''
  if (!project || !isId(id, 'run')) return {}
  const known = await recoveryExtra(edge, caller, project.id, id)
  return isRefusal(known) ? known : { input: { ...known } }
}
/** Prepares a recovery, which resumes a suspended run. */
const recover: Prepare = async (edge, call, ...rest) => {
  const known = await retry(edge, call, ...rest)
  if (isRefusal(known) || !call.project) return known
  return { input: { ...known.input, ...(await gateExtra(edge, call.project.id, call.caller)) } }
}

export const recoveryPreparations: Readonly<Record<string, Prepare>> = {
  'run.retry': retry,
  'run.recover': recover,
}
