/**
 * Removes files that no artifact needs any longer. Such a file remains, for example, when a gateway
 * was killed after it had stored the bytes of an upload, but before it stored the record. Another
 * example is an artifact that was published while its project was being deleted.
 *
 * Invariants:
 * W1. The owner of the artifact decides, not a view. A file stays while its upload is pending, and
 *     while its artifact is ready and its project exists.
 * W2. A file younger than the minimum age stays, regardless of the owner's answer.
 * W3. Without an answer from the owner, nothing is removed.
 * W4. Only one installation sweeps a store. Its organization is recorded in the store, because an
 *     installation has no records of the artifacts of another.
 */
import { artifactAt } from '../../gateway/commands/artifacts/reservation.ts'
import type { Files, World } from '../../gateway/ports.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { removeArtifact } from '../executor/errands/removal.ts'
import type { FileList } from './file-list.ts'

/** Name of the file with the id of the organization that uses the store. */
export const OWNER = 'installation'
const PREFIX = 'artifacts/'

/** Parameters of a sweep. `limit` is the maximum number of files of one page. */
export interface ArtifactSweep {
  readonly files: Files & FileList
  readonly world: World
  readonly limit: number
  readonly minAge: number
}

/**
 * Whether the store belongs to this installation. If the store records no installation, it is
 * claimed for this one.
 */
async function isOwned({ files, world }: ArtifactSweep): Promise<boolean> {
  const recorded = async () => {
    const bytes = await files.get(OWNER)
    return bytes && Buffer.from(bytes).toString()
  }
  const known = await recorded()
  if (known !== undefined) return known === world.organization()
  await files.put(OWNER, Buffer.from(world.organization()))
  return (await recorded()) === world.organization()
}

/**
 * Examines one page of files.
 * @param after `next` of the previous page; undefined for the first page.
 * @returns the number of files that were removed, and the position after which the next page
 *   begins; `next` is absent when the sweep has ended.
 * @throws Error when the store, or the owner of an artifact, does not answer.
 */
export async function sweepArtifacts(
  sweep: ArtifactSweep,
  after?: string,
): Promise<{ readonly removed: number; readonly next?: string }> {
  const { files, world, limit, minAge } = sweep
  if (!(await isOwned(sweep))) {
    world.log.warn(
      { event: 'artifact_sweep_refused' },
      'the store of files belongs to another installation',
    )
    return { removed: 0 }
  }
  const page = await files.list(PREFIX, after, limit)
  const isDeleted = deletedProjects(world)
  let removed = 0
  for (const { name, at } of page.files) {
    if (world.now() - at < minAge) continue
    const [, project = '', id = ''] = name.split('/')
    if (!isId(id, 'artifact')) continue
    const kept = await world.ask(artifactAt(project, id), 'content', {})
    if (kept && isRefusal(kept)) throw new Error(`artifact ${id}: ${kept.refused}`)
    if (kept?.state === 'pending') continue
    if (kept?.state === 'ready' && name.startsWith(kept.blob)) {
      if (!(await isDeleted(project))) continue
      // The effects of the artifact delete its files and settle the quota.
      const gone = await removeArtifact(world, project, id)
      if (isRefusal(gone)) throw new Error(`artifact ${id}: ${gone.refused}`)
    } else await files.delete(name)
    removed++
  }
  return { removed, ...(page.next !== undefined && { next: page.next }) }
}

/** Returns a function that checks whether a project was deleted. Reads the organization once. */
function deletedProjects(world: World): (project: string) => Promise<boolean> {
  const read = async () => {
    const id = world.organization()
    const known = await world.ask({ project: id, kind: 'organization', id }, 'directory', {})
    if (isRefusal(known)) throw new Error(`the organization: ${known.refused}`)
    return known.projects
  }
  let projects: ReturnType<typeof read> | undefined
  return async (project) => (await (projects ??= read()))[project]?.deleted === true
}
