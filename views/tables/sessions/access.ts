/** Determines whether a viewer may read a session, or a turn or interaction of a session. */
import { channelOfKey } from '../../../protocol/channels/exchange.ts'
import type { Viewer } from '../../../protocol/channels/schema.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import type { Store } from '../../store.ts'
import { interactionVisibleTo, viewerValues, visibleTo } from './visibility.ts'

/**
 * Returns the access of a viewer. `known`: the session, turn or interaction exists. `closed`: it
 * exists, but the viewer may not read it. `restricted`: the session is private. `channel`: the
 * channel that the session belongs to.
 */
export function sessionAccess(
  store: Store,
  project: number,
  { of, viewer }: ViewQueries['session_access']['input'],
): { known: boolean; closed: boolean; restricted: boolean; channel?: string } {
  if ('interaction_id' in of) return interactionAccess(store, project, of, viewer)
  const select = `SELECT s.session_key, s.private, ${visibleTo('s')} AS visible FROM`
  const known = store.one<{ session_key: string; private: number; visible: number }>(
    'session_id' in of
      ? `${select} sessions s WHERE s.id = ? AND s.project = ?`
      : `${select} session_turns t JOIN sessions s ON s.n = t.session WHERE t.id = ? AND t.project = ?`,
    ...viewerValues(viewer),
    'session_id' in of ? of.session_id : of.turn_id,
    project,
  )
  const channel = known && channelOfKey(known.session_key)
  return {
    known: known !== undefined,
    closed: known?.visible === 0,
    restricted: known?.private === 1,
    ...(channel !== undefined && { channel }),
  }
}
/**
 * Returns the reply of `sessionAccess` for an interaction. The interaction is closed to a viewer
 * who may not read its session, unless the viewer is a target or reviewer. An interaction that
 * belongs to a session is `restricted`.
 */
function interactionAccess(
  store: Store,
  project: number,
  { interaction_id, names }: { readonly interaction_id: string; readonly names: readonly string[] },
  viewer: Viewer,
): { known: boolean; closed: boolean; restricted: boolean } {
  const known = store.one<{ session: string | null; visible: number }>(
    `SELECT i.session, ${interactionVisibleTo('i', names)} AS visible
     FROM interactions i
     WHERE i.id = ? AND i.project = ?`,
    ...viewerValues(viewer),
    ...names,
    interaction_id,
    project,
  )
  return {
    known: known !== undefined,
    closed: known?.visible === 0,
    restricted: typeof known?.session === 'string',
  }
}
