/**
 * The feed of a project, the stream of all its run events, as a sequence to follow. Owners of
 * shards only announce that there may be new events. The frames are read from the view, which
 * determines their order across all shards.
 */
import { isRefusal } from '../../protocol/errors.ts'
import type { ViewQueries } from '../../protocol/queries/views.ts'
import type { World } from '../ports.ts'
import type { Item } from './chunk.ts'
import { type Follower, MAX_WAIT_MS } from './follow.ts'
import type { Source } from './followers.ts'
import { frameOf, oneLine } from './sse.ts'

/**
 * Maximum number of frames per page: `usual` by default, and `long` for followers that lag behind.
 */
const PAGE = { usual: 200, long: 2000 } as const

/**
 * Adds a frame to the items. The frames of one event, which have the same cursor, are one item, so
 * that they are never separated.
 * @param line JSON that `oneLine` returned.
 */
function add(items: Item[], seq: number, type: string, line: string): void {
  const before = items.at(-1)?.cursor === seq ? (items.pop()?.frame ?? '') : ''
  items.push({ cursor: seq, frame: before + frameOf(type, line, seq) })
}
/** Returns the items of a page. A view of an earlier release answers without `appended`. */
function itemsOf({ items: events, appended = '' }: ViewQueries['feed']['reply']): Item[] {
  const items: Item[] = []
  for (const { seq, type, json } of events) add(items, seq, type, oneLine(json))
  // Escaping a whole page takes much less time than escaping each event.
  const lines = oneLine(appended)
  for (let from = 0; from < lines.length; ) {
    const type = lines.indexOf(' ', from) + 1
    const json = lines.indexOf(' ', type) + 1
    const end = lines.indexOf('\n', json)
    add(
      items,
      Number(lines.slice(from, type - 1)),
      lines.slice(type, json - 1),
      lines.slice(json, end),
    )
    from = end + 1
  }
  return items
}

/** Returns the source of a project's feed. */
export function feedSource(world: World, project: string): Source {
  const ask = async (after: number, limit: number, fresh?: number, within?: number) =>
    await world.view(project, 'feed', { after, limit, appended: true }, fresh, within)
  return {
    key: `feed ${project}`,
    comment: ':keepalive',
    // The view only has to reach the next position, so that new events are returned as soon as the
    // view has them. Waiting for all announced events would add to the lag.
    ask: async (after, fresh, behind) => {
      const page = await ask(
        after,
        behind ? PAGE.long : PAGE.usual,
        fresh === undefined ? undefined : Math.min(fresh, after + 1),
        MAX_WAIT_MS,
      )
      if (isRefusal(page)) return page
      return {
        items: itemsOf(page),
        last: page.last,
        ended: false,
        oldest: page.oldest,
        more: page.more,
        partial: fresh !== undefined,
        late: page.late,
        ...(!page.more && page.last < after && { restart: page.last }),
      }
    },
    newest: async () => {
      const page = await ask(Number.MAX_SAFE_INTEGER, 1)
      return isRefusal(page)
        ? page
        : { items: [], last: page.last, ended: false, oldest: 0, more: false }
    },
    // The follower runs one query at a time for its live clients, so announcements that arrive
    // during a query do not each cause another query.
    subscribe: (follower: Follower) => world.moved(project, (cursor) => follower.notice(cursor)),
  }
}
