/**
 * The records that have changed, for clients that follow the lists of a project. Changes are kept
 * in memory only (`tail.ts`). Whether a reader may receive the id of a record is determined at
 * query time, from the tables of the record's resource.
 */
import type { Viewer } from '../../../protocol/channels/schema.ts'
import { feedKinds, type Kind, kinds, lastCursor } from '../../../protocol/entry.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { type ClosableKind, changesOf } from '../../../protocol/streams/changes.ts'
import type { ChangeReader } from '../../../protocol/streams/queries.ts'
import { type Arm, defineView } from '../../define-view.ts'
import type { Store } from '../../store.ts'
import { channelGet, channelRow } from '../channels/channels.ts'
import { sessionAccess } from '../sessions/access.ts'
import { inReadableSession, viewerValues } from '../sessions/visibility.ts'

const note: Arm = (store, place) => {
  if (!store.changes.active) return
  for (const change of changesOf(place.entry))
    store.changes.add(place.entry.project, change, lastCursor(place))
}

/** Returns whether a reader may read a record; undefined if there is no such record. */
type Readable = (
  store: Store,
  project: number,
  id: string,
  reader: ChangeReader,
) => boolean | undefined
const ofSession = (
  store: Store,
  project: number,
  of: ViewQueries['session_access']['input']['of'],
  viewer: Viewer,
): boolean | undefined => {
  const { known, closed } = sessionAccess(store, project, { of, viewer })
  return known ? !closed : undefined
}
const readable: Readonly<Record<ClosableKind, Readable>> = {
  channel: (store, project, id, { viewer }) =>
    channelRow(store, project, id) && !('refused' in channelGet(store, project, { id, viewer })),
  session: (store, project, session_id, { viewer }) =>
    ofSession(store, project, { session_id }, viewer),
  interaction: (store, project, interaction_id, { viewer, names }) =>
    ofSession(store, project, { interaction_id, names }, viewer),
  artifact: (store, project, id, { viewer }) => {
    const row = store.one<{ readable: number }>(
      `SELECT (owner = ? OR (shared = 1 AND ${inReadableSession('artifacts')})) AS readable
       FROM artifacts WHERE id = ? AND project = ?`,
      viewer.id,
      ...viewerValues(viewer),
      id,
      project,
    )
    return row && row.readable === 1
  },
}

function readableBy(
  store: Store,
  project: number,
  { records, readers }: ViewQueries['changes_readable']['input'],
): ViewQueries['changes_readable']['reply'] {
  const gone = new Set<number>()
  const found = readers.map((reader) =>
    [...records.entries()].flatMap(([index, { kind, id }]) => {
      const may = readable[kind](store, project, id, reader)
      if (may === undefined) gone.add(index)
      return may ? [index] : []
    }),
  )
  return { gone: [...gone], readable: found }
}

/**
 * The kinds whose changes are recorded. Runs and jobs are excluded, because the feed reports their
 * changes.
 */
const noted = kinds.filter((kind) => !(feedKinds as readonly Kind[]).includes(kind))

export const changes = defineView({
  kinds: Object.fromEntries(noted.map((kind) => [kind, note])) as Record<Kind, Arm>,
  gathers: noted,
  tables: '',
  queries: {
    changes: ({ store, current }, { of, after }) => {
      const { changes, floor } = store.changes.read(of, after, current)
      return { items: changes, last: current, floor }
    },
    changes_readable: ({ store, project }, input) => readableBy(store, project, input),
  },
})
