/**
 * Answers transcript queries: pages of a transcript, and the streaming content of a turn. The
 * content of the view is combined with previews of model output. Streams are in `stream.ts`.
 */

import { timestamp } from '../../../protocol/common.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import { settledStatuses } from '../../../protocol/interactions/schema.ts'
import {
  type TranscriptMessage,
  type TranscriptSnapshot,
  type TranscriptTurn,
  transcriptTurn,
} from '../../../protocol/sessions/schema.ts'
import type { Changed, TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'
import type { LiveTurn } from '../../../protocol/sessions/transcript/rows.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import { openCursor, sealCursor } from '../../http/cursor.ts'
import type { World } from '../../ports.ts'
import { knownResults } from '../results.ts'
import { askPage } from './followed.ts'
import { withPreview } from './live.ts'
import { openTranscriptCursor, sealTranscriptCursor } from './transcript-cursor.ts'
import { previewData, toolCallData } from './v1.ts'

/** Returns the streaming rows, with the content of their previews so far. */
const shown = (
  world: World,
  project: string,
  rows: readonly Changed<TranscriptMessage>[],
): Promise<TranscriptMessage[]> =>
  Promise.all(
    rows.map(async ({ revision, record }) => {
      const given =
        record.content.length > 0
          ? undefined
          : await world.previewed(project, record.id).catch(() => undefined)
      return withPreview(record, given && given.base >= revision ? given : undefined)
    }),
  )

interface Wanted {
  readonly after?: number
  /** The revision at which the pages end. It is determined by the first page. */
  readonly until?: number
  readonly limit: number
}
const pageBinding = (project: string, session_id: string) => ({
  project,
  route: 'session.transcript.page',
  filters: { session_id },
})
/** Determines the requested page. A page token takes precedence over a cursor and a limit. */
function wanted(
  edge: Edge,
  { query }: Call,
  project: string,
  session_id: string,
): Wanted | Refusal {
  const { cursor, page_token, limit } = query as {
    cursor?: string
    page_token?: string
    limit: number
  }
  if (page_token !== undefined) {
    const opened = openCursor(edge.world, pageBinding(project, session_id), page_token)
    if (isRefusal(opened))
      return refuseFields({ field: 'page_token', message: 'is not a page of this transcript' })
    // A token of an older release contains no end revision.
    const [after, of, until] = opened.position as [number, number, number?]
    return { after, limit: of, ...(until !== undefined && { until }) }
  }
  if (cursor === undefined) return { limit }
  const opened = openTranscriptCursor(edge.world, project, session_id, cursor)
  return isRefusal(opened) ? opened : { after: opened.revision, limit }
}

/** Answers with a page of the transcript, in which streaming rows contain their output so far. */
export async function snapshot(edge: Edge, call: Call): Promise<TranscriptSnapshot | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const session_id = call.slots['session_id'] ?? ''
  if (!isId(session_id, 'agent_session')) return refuse('not_found')
  const asked = wanted(edge, call, project, session_id)
  if (isRefusal(asked)) return asked
  const page = await askPage(world, project, { session_id, ...asked })
  if (isRefusal(page)) return page
  const live = await shown(world, project, page.live)
  return {
    messages: [...page.messages.map(({ record }) => record), ...live],
    turns: turnsOf(page, live),
    // A client that resumes after an intermediate page does not receive the open questions of this
    // page again, so every intermediate page includes them.
    interactions: page.more
      ? page.interactions.flatMap(({ record }) =>
          settledStatuses.has(record.status) ? [] : [record],
        )
      : [...page.pending],
    has_more: page.more,
    resume_cursor: sealTranscriptCursor(world, project, session_id, page.through),
    ...(page.more && {
      next_page_token: sealCursor(world, pageBinding(project, session_id), [
        page.through,
        asked.limit,
        page.cut,
      ]),
    }),
  }
}
/**
 * Returns the turns that have changed, and other active turns: all of them if the request has no
 * cursor, otherwise only those with a streaming row.
 */
function turnsOf(
  { after, turns, active }: TranscriptPage,
  live: readonly TranscriptMessage[],
): TranscriptTurn[] {
  const has = new Set(turns.map(({ record }) => record.id))
  const more = active.filter(
    ({ record }) =>
      !has.has(record.id) && (after < 0 || live.some(({ turn_id }) => turn_id === record.id)),
  )
  return [...more, ...turns].map(({ record }) => transcriptTurn(record))
}

/** Answers with the streaming content of a turn, as events of `session.stream` in format v1. */
export async function liveTurn(edge: Edge, call: Call): Promise<LiveTurn | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const { session_id = '', turn_id = '' } = call.slots
  const found = await world.view(project, 'session.turn_live', { session_id, turn_id })
  if (isRefusal(found)) return found
  const at = world.now()
  const rows = await shown(world, project, found.rows)
  const results = await knownResults(world, project, session_id, () => rows)
  const frames = [
    ...rows
      .filter(({ content }) => content.length > 0)
      .flatMap((row) => [
        { event_type: 'session.message.preview', ...previewData(row, at) },
        ...toolCallData(row, at).map((call) => ({ event_type: 'tool.call', session_id, ...call })),
      ]),
    ...results.map((result) => ({ event_type: 'tool.result', session_id, ...result })),
  ].map((frame, index) => ({ ...frame, live_sequence: index + 1 }))
  return {
    session_id,
    turn_id,
    frames,
    last_live_sequence: frames.length,
    updated_at: timestamp(at),
  }
}
