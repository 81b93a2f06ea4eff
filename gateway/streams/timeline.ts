/**
 * The timeline of one run as a sequence to follow: pages from the view, and live entries from the
 * run's owner. A gateway has one subscription per run and format, for any number of clients.
 */

import { timestamp } from '../../protocol/common.ts'
import { lastCursor, type Placed } from '../../protocol/entry.ts'
import { isRefusal, refuse } from '../../protocol/errors.ts'
import { type RunEvent, timelineRecord, timelineTypes } from '../../protocol/runs/events.ts'
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import type { Preview } from '../../protocol/sessions/transcript/previews.ts'
import type { World } from '../ports.ts'
import type { Item } from './chunk.ts'
import { type Follower, WITHIN } from './follow.ts'
import type { Source } from './followers.ts'
import { frame } from './sse.ts'

/** Events per query. */
const PAGE = 100
const terminal: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])
/** The event by which an ended run continues. */
const revived = 'run.resumed'

/** A format of the events. */
interface Spelling {
  /** Followers of one run that use the same format share its items. */
  readonly name: string
  readonly spell: (record: RunEventRecord) => string
  /** The frame of a chunk of model output, for clients that are shown such output. */
  readonly preview?: (chunk: Preview) => string
}
const framed: Spelling = {
  name: 'run',
  spell: (record) => frame(record.event_type, record, record.sequence),
}
/**
 * The format with model output for the run. Output is sent once, as it is generated, and has no
 * cursor.
 */
export const aloud: Spelling = {
  ...framed,
  name: 'run aloud',
  preview: ({ delta, run_id, session_id, turn_id, job_id, sequence, at, worker_id, model }) =>
    frame('generation.delta', {
      event_type: 'generation.delta',
      delta,
      run_id,
      session_id,
      turn_id,
      job_id,
      ...(sequence !== undefined && { delta_sequence: sequence, sequence }),
      emitted_at: timestamp(at),
      ...(worker_id !== undefined && { worker_id }),
      ...(model !== undefined && { model }),
    }),
}

/** The items that an entry adds to the timeline of a run. */
function itemsOf({ cursor, entry }: Placed, itemOf: (record: RunEventRecord) => Item): Item[] {
  const at = timestamp(entry.origin.at)
  return entry.events.flatMap((event, index) =>
    timelineTypes.has(event.type)
      ? [itemOf(timelineRecord(entry.id, cursor + index, at, event as RunEvent))]
      : [],
  )
}

/** Whether a run has ended with this entry. */
const endsWith = ({ entry }: Placed): boolean => {
  const last = entry.events.findLast(({ type }) => terminal.has(type) || type === revived)
  return last !== undefined && terminal.has(last.type)
}

/** The timeline of a run; a query refuses with `not_found` when the project has no such run. */
export function timelineSource(
  world: World,
  project: string,
  run: string,
  { name, spell, preview } = framed,
): Source {
  /** Subscribes to model output, at most once, and only when needed: most runs use no models. */
  let listen = (): void => {}
  const itemOf = (record: RunEventRecord): Item => {
    if (record.event_type === 'turn.opened') listen()
    return { cursor: record.sequence, frame: spell(record) }
  }
  return {
    key: `${name} ${project} ${run}`,
    comment: ': keepalive',
    ask: async (after, fresh) => {
      // The client may have been shown the opening of a turn before it reconnected.
      if (after > 0) listen()
      const page = await world.view(
        project,
        'timeline',
        { run_id: run, after, limit: PAGE },
        fresh,
        WITHIN,
      )
      if (isRefusal(page)) return page
      if (!page.exists) return refuse(page.late ? 'service_unavailable' : 'not_found')
      const items = (page.items as readonly RunEventRecord[]).map(itemOf)
      return {
        items,
        last: page.last,
        ended: page.ended,
        oldest: page.oldest,
        more: page.more ?? items.length >= PAGE,
        late: page.late,
      }
    },
    subscribe: (follower: Follower) => {
      const stops = [
        world.live(project, 'run', run, (placed) =>
          placed.stripped
            ? follower.notice(lastCursor(placed))
            : follower.hear(
                placed.entry.prev,
                lastCursor(placed),
                () => itemsOf(placed, itemOf),
                endsWith(placed),
              ),
        ),
      ]
      if (preview)
        listen = () => {
          listen = () => {}
          stops.push(
            world.onPreview(project, run, (chunks) => follower.show(chunks.map(preview).join(''))),
          )
        }
      return () => {
        listen = () => {}
        for (const stop of stops) stop()
      }
    },
  }
}
