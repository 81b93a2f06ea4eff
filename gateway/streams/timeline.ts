/**
 * The timeline of one run as a sequence to follow: pages from the view, and live entries from the
 * owner of the run's shard. A gateway has one subscription for each followed run and format, for
 * any number of clients.
 */

import { timestamp } from '../../protocol/common.ts'
import { lastCursor, type PlacedEntry } from '../../protocol/entry.ts'
import { isRefusal, refuse } from '../../protocol/errors.ts'
import { type RunEvent, timelineRecord, timelineTypes } from '../../protocol/runs/events.ts'
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import type { Preview } from '../../protocol/sessions/transcript/previews.ts'
import type { World } from '../ports.ts'
import type { Item } from './chunk.ts'
import { type Follower, MAX_WAIT_MS } from './follow.ts'
import type { Source } from './followers.ts'
import { frame } from './sse.ts'

/** Maximum number of events per query. */
const PAGE = 100
const terminal: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])
/** The type of the event that resumes an ended run. */
const revived = 'run.resumed'

/** A format of the events of a timeline. */
interface Spelling {
  /** Clients that follow a run in formats of the same name share one follower. */
  readonly name: string
  readonly spell: (record: RunEventRecord) => string
  /** Returns the frame for a chunk of model output. Absent in formats without model output. */
  readonly preview?: (chunk: Preview) => string
}
const framed: Spelling = {
  name: 'run',
  spell: (record) => frame(record.event_type, record, record.sequence),
}
/**
 * The format with the model output of the run. The output is sent once, while it is generated, and
 * has no cursor.
 */
export const withModelOutput: Spelling = {
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

/** Returns the items that an entry adds to the timeline of a run. */
function itemsOf({ cursor, entry }: PlacedEntry, itemOf: (record: RunEventRecord) => Item): Item[] {
  const at = timestamp(entry.origin.at)
  return entry.events.flatMap((event, index) =>
    timelineTypes.has(event.type)
      ? [itemOf(timelineRecord(entry.id, cursor + index, at, event as RunEvent))]
      : [],
  )
}

/**
 * Returns whether an entry ends its run. An entry in which the run ends and is resumed again does
 * not.
 */
export const endsRun = ({ entry }: PlacedEntry): boolean => {
  const last = entry.events.findLast(({ type }) => terminal.has(type) || type === revived)
  return last !== undefined && terminal.has(last.type)
}

/**
 * Returns the source of a run's timeline. Its queries are refused with `not_found` when the project
 * has no such run.
 */
export function timelineSource(
  world: World,
  project: string,
  run: string,
  { name, spell, preview } = framed,
): Source {
  /**
   * Subscribes to model output, at most once. It is called only when the run may have a turn,
   * because not every run uses a model.
   */
  let listen = (): void => {}
  const itemOf = (record: RunEventRecord): Item => {
    if (record.event_type === 'turn.opened') listen()
    return { cursor: record.sequence, frame: spell(record) }
  }
  return {
    key: `${name} ${project} ${run}`,
    comment: ': keepalive',
    ask: async (after, fresh) => {
      // The client may have received `turn.opened` before it reconnected, so the run may have a
      // turn.
      if (after > 0) listen()
      const page = await world.view(
        project,
        'timeline',
        { run_id: run, after, limit: PAGE },
        fresh,
        MAX_WAIT_MS,
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
        ...(page.current !== undefined && page.current < after && { restart: 0 }),
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
                endsRun(placed),
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
