/**
 * Preparations and queries of the rows for agent memory. The preparations check that the agent
 * exists, and add the saved content to the reply. The query serves the feed of changes. Views
 * answer all other reads directly.
 */
import type { Api } from '../../protocol/api.ts'
import type { Reply } from '../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { openCursor, sealCursor } from '../http/cursor.ts'
import { DEFAULT_LIMIT, type LocalQuery, localQuery } from '../listing.ts'
import type { Prepare, Prepared } from '../prepare.ts'

/**
 * Refuses a request when the agent does not exist, because a memory exists only while its agent
 * does.
 */
async function ofAgent(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const known = await edge.directory.project(scopeId(edge, call))
  if (isRefusal(known)) return known
  return getOwn(known.agents, call.slots['id'] ?? '')
    ? {}
    : refuse('not_found', { resource: 'agent' }, 'There is no such agent in this project.')
}
async function save(edge: Edge, call: Call): Promise<Prepared | Refusal> {
  const prepared = await ofAgent(edge, call)
  const { content, summary, metadata } = call.body
  return isRefusal(prepared)
    ? prepared
    : {
        reply: {
          ...(summary !== undefined && summary !== '' && { summary }),
          content,
          ...(metadata !== undefined && { metadata }),
        },
      }
}

/** Preparations of the command rows, by row name. */
export const memoryPreparations: Readonly<Record<string, Prepare>> = {
  'memory.save': save,
  'memory.forget': ofAgent,
}

/** Handlers of the query rows, by row name. */
export const memoryQueries: Readonly<Record<string, LocalQuery>> = {
  'memory.changes': localQuery<'memory.changes'>(
    async (
      { world, project = '' },
      { id, after, limit = DEFAULT_LIMIT },
    ): Promise<Reply<Api['memory.changes']> | Refusal> => {
      const binding = { project, route: 'memory.changes', filters: { id } }
      const opened = after === undefined ? undefined : openCursor(world, binding, after)
      if (opened && isRefusal(opened))
        return refuseFields({ field: 'after', message: 'is not a cursor of this feed' })
      const found = await world.view(project, 'memory_changes', {
        id,
        limit,
        ...(typeof opened?.position === 'number' && { after: opened.position }),
      })
      if (isRefusal(found)) return found
      return {
        items: [...found.items],
        has_more: found.more,
        next_cursor: sealCursor(world, binding, found.last),
      }
    },
  ),
}
