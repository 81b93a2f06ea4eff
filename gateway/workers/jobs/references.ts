/**
 * Checks the artifact references in the results of jobs. A result is stored unchanged even if its
 * references are wrong. A wrong reference is only logged, for the developers of the worker.
 */
import { artifactReferences } from '../../../protocol/artifacts/reference.ts'
import { isRefusal, refuse } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import type { World } from '../../ports.ts'

type Asked = Pick<World, 'ask' | 'log'>

/**
 * Writes one warning if the result of a job refers to artifacts that its project does not have.
 * Artifacts whose state cannot be read are skipped. The promise never rejects, because no caller
 * awaits it. Returns undefined when the result has no references.
 */
export function checkReferences(
  world: Asked,
  project: string,
  job_id: string,
  result: unknown,
): Promise<void> | undefined {
  const ids = artifactReferences(result).map(({ id }) => id)
  return ids.length === 0 ? undefined : check(world, project, job_id, ids)
}

async function check(
  world: Asked,
  project: string,
  job_id: string,
  ids: readonly string[],
): Promise<void> {
  const unknown: string[] = []
  for (const id of ids) {
    const kept = isId(id, 'artifact')
      ? await world
          .ask({ project, kind: 'artifact', id }, 'content', {})
          .catch(() => refuse('service_unavailable'))
      : null
    if (kept && isRefusal(kept)) continue
    if (kept?.state !== 'ready') unknown.push(id)
  }
  if (unknown.length > 0)
    world.log.warn(
      { event: 'artifact_reference_unknown', project, job_id, artifact_ids: unknown },
      'the result of a job refers to artifacts that its project does not have',
    )
}
