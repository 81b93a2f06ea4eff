/** Answers the query `run.logs` with a page of the log lines of a run. */
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { DEFAULT_LIMIT, type LocalQuery, localQuery } from '../listing.ts'
import type { World } from '../ports.ts'
import { readLog } from './read.ts'

/**
 * Returns whether a run has ended, according to the view. Refused with `not_found` when the project
 * has no such run.
 */
export async function runStanding(
  world: World,
  project: string,
  run_id: string,
): Promise<{ readonly ended: boolean } | Refusal> {
  const input = { run_id, after: Number.MAX_SAFE_INTEGER, limit: 1 }
  const found = await world.view(project, 'timeline', input)
  if (isRefusal(found)) return found
  return found.exists ? { ended: found.ended } : refuse('not_found')
}

export const logQueries: Readonly<Record<'run.logs', LocalQuery>> = {
  'run.logs': localQuery<'run.logs'>(
    async ({ world, project = '' }, { id, limit = DEFAULT_LIMIT, ...question }) => {
      if (!isId(id, 'run')) return refuse('not_found')
      const standing = await runStanding(world, project, id)
      if (isRefusal(standing)) return standing
      const { logs } = world
      return logs
        ? readLog(logs, project, id, { ...question, limit }).catch(() =>
            refuse('service_unavailable'),
          )
        : { items: [], has_more: false, next_after: 0 }
    },
  ),
}
