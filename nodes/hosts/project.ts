/** Looks up the project of an environment for the launch of its worker. */
import type { World } from '../../gateway/ports.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { ProjectFacts } from './launch.ts'
import { ProviderFault } from './provider.ts'

/**
 * Reads the facts about a project.
 * @throws ProviderFault when the project cannot be read or was deleted; the start is then repeated.
 */
export async function readProject(
  world: Pick<World, 'ask' | 'organization'>,
  id: string,
): Promise<ProjectFacts> {
  const organization = world.organization()
  const known = await world.ask(
    { project: organization, kind: 'organization', id: organization },
    'directory',
    { id: organization },
  )
  const project = isRefusal(known) ? undefined : getOwn(known.projects, id)
  if (!project || project.deleted)
    throw new ProviderFault('The project of the environment cannot be read.')
  return { handle: project.handle, repository_hosts: {} }
}
