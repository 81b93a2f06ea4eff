/**
 * Authenticates the workers of environments. The gateway queries the owner of the environment to
 * check that the hash of a credential belongs to the current worker. An answer is reused for
 * `REUSE_MS`, so a superseded worker may be admitted for this time. The registration on the worker
 * socket queries the owner again (`environment.connect`).
 */
import type { OrganizationDirectory } from '../../protocol/access/directory.ts'
import type { EnvironmentCredential } from '../../protocol/environments/commands.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'
import type { Caller } from './authenticate.ts'

/** Milliseconds for which an owner's answer is reused. */
const REUSE_MS = 2000
/** Maximum number of cached answers. */
const MAX_CACHED = 10_000

interface Known {
  readonly caller: Caller
  readonly until: number
}

const callerOf = (
  project_id: string,
  proof: Caller['proof'],
  { environment_id: id, name, generation }: EnvironmentCredential,
): Caller => ({
  principal: { type: 'service_account', id, name },
  credential: { type: 'worker_lease', id, name },
  scope: { kind: 'project', project_id },
  permissions: new Set(),
  environment: { id, generation },
  proof,
})

/**
 * Creates the function that authenticates the worker of an environment. It returns `unauthorized`
 * when no environment accepts the credential.
 * @param projects returns the ids of the projects with the given tag.
 */
export function openEnvironmentWorkers(
  world: Pick<World, 'ask' | 'monotonic'>,
  projects: (known: OrganizationDirectory, tag: string) => readonly string[],
): (
  known: OrganizationDirectory,
  proof: Caller['proof'],
  environment_id: string,
) => Promise<Caller | Refusal> {
  const answers = new Map<string, Known>()

  return async (known, proof, environment_id) => {
    const before = answers.get(proof.hash)
    const reusable = before?.caller.proof.handle === proof.handle
    if (before && reusable && world.monotonic() < before.until) return before.caller
    answers.delete(proof.hash)
    for (const project of projects(known, proof.tag)) {
      const found = await world.ask(
        { project, kind: 'environment', id: environment_id },
        'credential',
        {
          token_hash: proof.hash,
        },
      )
      if (!found) continue
      if (isRefusal(found)) return found
      // An unchanged caller stays the same object, which tells `again` that nothing has changed.
      const isSame = reusable && before?.caller.environment?.generation === found.generation
      const caller = isSame ? before.caller : callerOf(project, proof, found)
      if (answers.size >= MAX_CACHED) answers.delete(answers.keys().next().value ?? '')
      answers.set(proof.hash, { caller, until: world.monotonic() + REUSE_MS })
      return caller
    }
    return refuse('unauthorized')
  }
}
