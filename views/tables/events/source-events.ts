/**
 * Stores and lists source events as they were published: as rows that never change, in journal
 * order.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { type JsonObject, parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import type { SourceEventRecord } from '../../../protocol/events/rows.ts'
import type { SourcesEvent } from '../../../protocol/events/sources.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { equalityConditions } from '../../conditions.ts'
import { type Page, type Paging, readPage } from '../../page.ts'
import type { Store } from '../../store.ts'
import {
  eventViewerValues,
  readableEvent,
  viewerValues,
  visibleTo,
} from '../sessions/visibility.ts'

type Published = Extract<SourcesEvent, { readonly type: 'source.published' }>

/** Stores the source events that an entry of a project's `events` actor publishes. */
export function applySourceEvents(store: Store, { cursor, entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  for (const [index, event] of (entry.events as readonly SourcesEvent[]).entries()) {
    if (event.type !== 'source.published') continue
    const { id, event_type, source_kind, source_id, dedup_key = null } = event
    const { private_session = null } = event
    const owner = event.private_owner ?? earlierOwner(store, project, event)
    store.append(
      'source_events',
      cursor + index,
      id,
      project,
      event_type,
      source_kind,
      source_id,
      dedup_key,
      private_session,
      owner,
      JSON.stringify(recordOf(event)),
    )
  }
}
/**
 * Returns the owner of the private artifact of an event that an earlier release published without
 * the owner, and null for all other events. If the view does not have the artifact, returns an
 * empty text, so that no principal can read the event.
 */
function earlierOwner(
  store: Store,
  project: number,
  { source_kind, source_id, event, private_session }: Published,
): string | null {
  if (source_kind !== 'artifact' || event['visibility'] !== 'private') return null
  if (private_session !== undefined) return null
  const artifact = store.one<{ owner: string }>(
    'SELECT owner FROM artifacts WHERE id = ? AND project = ?',
    source_id,
    project,
  )
  return artifact?.owner ?? ''
}
const count = (lists: Readonly<Record<string, readonly string[]>> = {}): number =>
  Object.values(lists).reduce((sum, { length }) => sum + length, 0)
const recordOf = ({
  id,
  event_type,
  source_kind,
  source_id,
  event,
  meta,
  occurred_at,
  depth,
  fires,
  wakes,
}: Published): SourceEventRecord => ({
  id,
  event_type,
  source_kind,
  source_id,
  event,
  meta,
  occurred_at,
  ...(depth > 0 && { causation: { depth } }),
  fired_triggers: count(fires),
  resumed_waits: count(wakes),
})

const read = ({ record }: { readonly record: string }): SourceEventRecord =>
  JSON.parse(record) as SourceEventRecord
/**
 * Returns a function that reads a record for a viewer. A message of a session that has been deleted
 * since, or that the viewer may no longer read because its channel changed, has no content.
 */
function readFor(store: Store, project: number, viewer: Viewer | undefined): typeof read {
  if (!viewer) return read
  const hidden = new Map<string, boolean>()
  const isHidden = (id: string): boolean => {
    const known =
      hidden.get(id) ??
      store.one(
        `SELECT n FROM sessions s
         WHERE s.project = ? AND s.id = ? AND (s.gone <> 0 OR NOT ${visibleTo('s')})`,
        project,
        id,
        ...viewerValues(viewer),
      ) !== undefined
    hidden.set(id, known)
    return known
  }
  return (row) => {
    const record = read(row)
    if (record.event_type !== 'session.message.created' || !isHidden(record.source_id))
      return record
    const { content: _, ...event } = record.event as JsonObject
    return { ...record, event }
  }
}

/** Filters of the list. All must match. */
export interface EventFilters extends Paging {
  readonly event_type?: string
  readonly source_kind?: string
  readonly source_id?: string
  /** The principal on whose behalf the query is made; absent: the service itself. */
  readonly viewer?: Viewer
}
/** Returns published source events, newest first. */
export function eventList(
  store: Store,
  project: number,
  input: EventFilters,
): Page<SourceEventRecord> {
  const { event_type, source_id, source_kind, viewer } = input
  const index =
    source_id !== undefined
      ? 'source_events_source'
      : event_type !== undefined
        ? 'source_events_type'
        : 'source_events_new'
  return readPage(
    store,
    {
      select: `SELECT cursor, record FROM source_events INDEXED BY ${index}`,
      conditions: [
        ...equalityConditions({ project, event_type, source_id, source_kind }),
        ...(viewer
          ? [[readableEvent('source_events'), ...eventViewerValues(viewer)] as const]
          : []),
      ],
      order: ['cursor'],
      direction: 'DESC',
    },
    input,
    readFor(store, project, viewer),
  )
}
/**
 * Returns, for each deduplication key, the id of the latest event published under the key; null if
 * no such event was published after `since` (Unix milliseconds).
 */
export function publishedKeys(
  store: Store,
  project: number,
  { keys, since }: ViewQueries['published_keys']['input'],
): ViewQueries['published_keys']['reply'] {
  const last = (key: string) =>
    store.one<{ id: string; record: string }>(
      `SELECT id, record
       FROM source_events INDEXED BY source_events_dedup
       WHERE project = ? AND dedup = ?
       ORDER BY cursor DESC LIMIT 1`,
      project,
      key,
    )
  return {
    ids: keys.map((key) => {
      const found = last(key)
      return found &&
        (parseTimestamp((JSON.parse(found.record) as SourceEventRecord).occurred_at) ?? 0) > since
        ? found.id
        : null
    }),
  }
}
/**
 * Returns a published source event, or `not_found` if it does not exist or the viewer may not read
 * its session or its artifact.
 */
export function eventGet(
  store: Store,
  project: number,
  { id, viewer }: { readonly id: string; readonly viewer?: Viewer },
): SourceEventRecord | Refusal {
  const row = store.one<{ readonly record: string }>(
    `SELECT cursor, record
     FROM source_events
     WHERE id = ? AND project = ?${viewer ? ` AND ${readableEvent('source_events')}` : ''}`,
    id,
    project,
    ...(viewer ? eventViewerValues(viewer) : []),
  )
  return row
    ? readFor(store, project, viewer)(row)
    : refuse('not_found', { resource: 'source_event' }, 'There is no such event in this project.')
}
