/** Deletes the artifacts of a deleted project. A repeat finds only those that are left. */
import type { World } from '../../../gateway/ports.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { systemOrigin } from '../system-origin.ts'
import type { Runs } from './errands.ts'

/** Number of artifacts that are looked up at once. */
const PAGE = 500

/** Deletes an artifact of a deleted project, or gives up its upload. */
export const removeArtifact = (world: World, project: string, id: string) =>
  world.command({
    project,
    kind: 'artifact',
    id,
    command_id: Buffer.from(world.random(16)).toString('hex'),
    name: 'artifact.remove',
    input: {},
    origin: systemOrigin(world, world.node),
  })

export const removeArtifacts: Runs<'remove_artifacts'> = async ({ world }, project) => {
  let after = ''
  for (;;) {
    const found = await world.view(project, 'artifact_ids', { after, limit: PAGE })
    if (isRefusal(found)) return found
    const last = found.items.at(-1)
    if (last === undefined) return {}
    for (const id of found.items) {
      const removed = await removeArtifact(world, project, id)
      if (isRefusal(removed)) return removed
    }
    after = last
  }
}
