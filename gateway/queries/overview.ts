/** Answers the queries for the overview of a project and for the state of the installation. */
import { isRefusal, refuse } from '../../protocol/errors.ts'
import { namesOf } from '../auth/people.ts'
import { viewerOf } from '../auth/viewer.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { type LocalQuery, localQuery } from '../listing.ts'

/** Returns the overview of a project. The interactions in it depend on the caller. */
export async function overviewFor(edge: Edge, call: Call): Promise<unknown> {
  const { caller, query } = call
  const project = scopeId(edge, call)
  const names = await namesOf(edge, project, caller)
  return isRefusal(names)
    ? names
    : edge.world.view(project, 'overview.get', {
        ...query,
        viewer: { ...viewerOf(caller), names },
      })
}

export const clusterQueries: Readonly<Record<'cluster.get', LocalQuery>> = {
  'cluster.get': localQuery<'cluster.get'>(({ world }) =>
    world.cluster
      ? world.cluster()
      : refuse('service_unavailable', undefined, 'This node does not know its cluster.'),
  ),
}
