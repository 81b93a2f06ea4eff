/**
 * The timeline of one run as a sequence to follow: pages from the view, live entries from the run's owner. One subscription per
 * run and gateway, whatever the number of clients.
 */
import { timelineRecord, timelineTypes, type RunEvent } from '../../protocol/runs/events.ts'
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import { timestamp } from '../../protocol/common.ts'
import { lastCursor, type Placed } from '../../protocol/entry.ts'
import { isRefusal, refuse, type Refusal } from '../../protocol/errors.ts'
import type { ViewQuestions } from '../../protocol/view-questions.ts'
import type { Preview } from '../../protocol/sessions/transcript/previews.ts'
import { WITHIN, type Follower } from './follow.ts'
import type { Item } from './chunk.ts'
import type { World } from '../ports.ts'
import { frame } from './sse.ts'
import type { Source } from './followers.ts'

/** Events asked for at once. */
const PAGE = 100
const terminal: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])
/** What makes a run that had ended go on. */
const revived = 'run.resumed'

/** How events are written down for those who follow. */
interface Spelling {
  /** Followers of one run who read the same spelling share what was read. */
  readonly name: string
  readonly spell: (record: RunEventRecord) => string
  /** What models say meanwhile, for those who are shown it. */
  readonly preview?: (piece: Preview) => string
}
const framed: Spelling = {
  name: 'run',
  spell: (record) => frame(record.event_type, record, record.sequence),
}
/** With what models say for the run, as they say it: no cursor, and never told again. */
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

/** What an entry of a run shows on its timeline. */
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

/** The timeline of a run; asking refuses `not_found` when the project has no such run. */
export function timelineSource(
  world: World,
  project: string,
  run: string,
  { name, spell, preview } = framed,
): Source {
  /** Begins to hear models, once: most runs ask none. */
  let listen = (): void => {}
  const itemOf = (record: RunEventRecord): Item => {
    if (record.event_type === 'turn.opened') listen()
    return { cursor: record.sequence, frame: spell(record) }
  }
  return {
    key: `${name} ${project} ${run}`,
    comment: ': keepalive',
    ask: async (after, fresh) => {
      // Who comes back may have been told before that a turn was opened.
      if (after > 0) listen()
      const page = (await world.view(
        project,
        'timeline',
        { run_id: run, after, limit: PAGE },
        fresh,
        WITHIN,
      )) as ViewQuestions['timeline']['reply'] | Refusal
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
            world.onPreview(project, run, (pieces) => follower.show(pieces.map(preview).join(''))),
          )
        }
      return () => {
        listen = () => {}
        for (const stop of stops) stop()
      }
    },
  }
}
