/** Looks up the project of an environment for the launch of its worker. */
import type { World } from '../../gateway/ports.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { ProjectFacts } from './launch.ts'
import { ProviderFault } from './provider.ts'

/** Returns the address (`name:port`) of a URL. */
function addressOf(url: string): string {
  const { hostname, port, protocol } = new URL(url)
  return `${hostname}:${port === '' ? (protocol === 'http:' ? 80 : 443) : port}`
}
/**
 * Reads the facts about a project.
 * @throws ProviderFault when the project cannot be read or was deleted.
 */
export async function readProject(
  world: Pick<World, 'ask' | 'organization' | 'unreachableRepository'>,
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
  const hosts = await world.ask({ project: id, kind: 'project', id }, 'repository_hosts', {})
  if (isRefusal(hosts)) throw new ProviderFault('The repository hosts cannot be read.')
  const reachable = await Promise.all(
    hosts.map(async ({ name, url }) =>
      (await world.unreachableRepository?.(url)) === undefined ? [[name, addressOf(url)]] : [],
    ),
  )
  return { handle: project.handle, repository_hosts: Object.fromEntries(reachable.flat()) }
}
