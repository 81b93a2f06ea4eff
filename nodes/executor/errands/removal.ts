/**
 * Deletes the artifacts of a deleted project, the stored definitions of its agents and the log
 * lines of its jobs, and destroys its environments. A repeat removes only what is left.
 */

import { sendNew } from '../../../gateway/http/send.ts'
import type { World } from '../../../gateway/ports.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { systemOrigin } from '../system-origin.ts'
import type { Runs } from './errands.ts'

/** Number of records that are looked up with one query. */
const PAGE = 500

const ours = (world: World) => systemOrigin(world, world.node)
/** Deletes an artifact of a deleted project, or abandons its upload. */
export const removeArtifact = (world: World, project: string, id: string) =>
  sendNew(world, { project, kind: 'artifact', id }, 'artifact.remove', {}, ours(world))
const removeEnvironment = (world: World, project: string, id: string) =>
  sendNew(world, { project, kind: 'environment', id }, 'environment.remove', {}, ours(world))

/** Removes every record whose id the query returns, page by page. */
async function removeAll(
  world: World,
  project: string,
  ids: 'artifact_ids' | 'environment_ids',
  remove: typeof removeArtifact | typeof removeEnvironment,
): Promise<Refusal | undefined> {
  let after = ''
  for (;;) {
    const found = await world.view(project, ids, { after, limit: PAGE })
    if (isRefusal(found)) return found
    const last = found.items.at(-1)
    if (last === undefined) return undefined
    for (const id of found.items) {
      const removed = await remove(world, project, id)
      if (isRefusal(removed)) return removed
    }
    after = last
  }
}

/** Performs the errand `remove_artifacts`, whose name predates environments. */
export const removeRecords: Runs<'remove_artifacts'> = async ({ world }, project) => {
  await world.definitions?.forget(project)
  await world.logs?.forget(project)
  return (
    (await removeAll(world, project, 'artifact_ids', removeArtifact)) ??
    (await removeAll(world, project, 'environment_ids', removeEnvironment)) ??
    {}
  )
}
