/** Checks the run, agent or loop to which a client binds a new environment. */
import type { CreateEnvironment, EnvironmentMode } from '../../../protocol/environments/schema.ts'
import { type FieldError, isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import type { Edge } from '../../call.ts'

type Bound = Exclude<EnvironmentMode, 'manual'>
export interface Binding {
  readonly mode: Bound
  readonly owner_id: string
}
const modes: readonly Bound[] = ['run', 'agent', 'loop']

/** Returns a fault for each owner id that the mode requires but lacks, or does not allow. */
export function bindingOwnerFaults(asked: CreateEnvironment): FieldError[] {
  const { mode = 'manual' } = asked
  return modes.flatMap((owner) => {
    const field = `${owner}_id` as const
    const isGiven = asked[field] !== undefined
    if (isGiven === (mode === owner)) return []
    return [
      {
        field,
        message: isGiven ? `requires the mode ${owner}` : `is required with the mode ${owner}`,
      },
    ]
  })
}
/** Returns the binding that a valid request asks for; undefined for the mode `manual`. */
export function bindingOf({ mode = 'manual', ...asked }: CreateEnvironment): Binding | undefined {
  const owner_id = mode === 'manual' ? undefined : asked[`${mode}_id`]
  return mode === 'manual' || owner_id === undefined ? undefined : { mode, owner_id }
}

/**
 * Refuses a binding to an owner that the project does not have (`not_found`), and to a run that has
 * ended (`conflict`).
 */
export async function bindingFault(
  { world, directory }: Edge,
  project: string,
  { mode, owner_id }: Binding,
): Promise<Refusal | undefined> {
  const missing = refuse('not_found', { [`${mode}_id`]: owner_id }, `There is no such ${mode}.`)
  if (!isId(owner_id, mode)) return missing
  if (mode === 'agent') {
    const known = await directory.project(project)
    if (isRefusal(known)) return known
    return getOwn(known.agents, owner_id) ? undefined : missing
  }
  if (mode === 'loop') {
    const version = await world.ask({ project, kind: 'loop', id: owner_id }, 'version', {})
    if (isRefusal(version)) return version
    return version ? undefined : missing
  }
  const run = await world.ask({ project, kind: 'run', id: owner_id }, 'get', {})
  if (isRefusal(run)) return run
  if (!run) return missing
  return terminal.has(run.status)
    ? refuse('conflict', { run_id: owner_id, status: run.status }, 'The run has ended.')
    : undefined
}
