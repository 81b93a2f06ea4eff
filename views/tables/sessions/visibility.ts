/**
 * SQL conditions for the records that a viewer may read. The rule is defined in
 * `protocol/sessions/visibility.ts`. `viewerValues` returns the values of the parameters.
 */
import type { Viewer } from '../../../protocol/channels/schema.ts'
import { placeholders } from '../../conditions.ts'
import type { Value } from '../../store.ts'

/** A condition that is true for a row `c` of `channels` that the viewer of its parameter may read. */
const READABLE_CHANNEL =
  '(c.private = 0 OR EXISTS (SELECT 1 FROM channel_members m WHERE m.channel = c.n AND m.member = ?))'
/**
 * Returns a condition that is true if a channel exists and the viewer may read it. The id of the
 * viewer is its only parameter.
 * @param id SQL expression of the id of the channel.
 */
export const channelVisibleTo = (id: string): string =>
  `EXISTS (SELECT 1 FROM channels c WHERE c.id = ${id} AND ${READABLE_CHANNEL})`
/**
 * Returns a condition that is true for the rows of `sessions` that a viewer may read.
 * @param alias the table's alias in the statement.
 */
export const visibleTo = (
  alias: string,
): string => `(CASE WHEN ${alias}.session_key GLOB 'channel:chan_*' THEN EXISTS (
  SELECT 1 FROM channels c WHERE c.project = ${alias}.project
    AND c.id = substr(${alias}.session_key, 9, instr(substr(${alias}.session_key, 9) || ':', ':') - 1)
    AND ${READABLE_CHANNEL})
  ELSE ${alias}.private = 0 OR ${alias}.agent = ? OR ? = 1
    OR EXISTS (SELECT 1 FROM session_people p WHERE p.session = ${alias}.n AND p.person = ?) END)`
/**
 * Returns a condition that is true for the rows of `interactions` that a viewer may read. A viewer
 * may read interactions without a session, interactions of sessions that the viewer may read or
 * that the view does not have, and interactions that have the viewer as target or reviewer.
 * @param alias the table's alias in the statement.
 * @param names the names under which interactions list the viewer as a target or reviewer. As
 * parameters of the condition, they follow the values of `viewerValues`.
 */
export const interactionVisibleTo = (
  alias: string,
  names: readonly string[],
): string => `(${alias}.session IS NULL OR NOT EXISTS (
  SELECT 1 FROM sessions s WHERE s.project = ${alias}.project AND s.id = ${alias}.session AND NOT ${visibleTo('s')})
  OR EXISTS (SELECT 1 FROM interaction_people a
    WHERE a.project = ${alias}.project AND a.person IN (${placeholders(names)})
    AND a.part IN ('target', 'reviewer') AND a.created_at = ${alias}.created_at AND a.id = ${alias}.id))`
/**
 * Returns a condition that is true for rows that belong to no session, or to a session that a
 * viewer may read.
 * @param alias the alias of a table with the columns `project` and `session`, which is the id of a
 * session or null.
 */
export const inReadableSession = (alias: string): string => `(${alias}.session IS NULL OR EXISTS (
  SELECT 1 FROM sessions s WHERE s.project = ${alias}.project AND s.id = ${alias}.session AND ${visibleTo('s')}))`
/**
 * Returns a condition that is true for the source events, or deliveries of them, that a viewer may
 * read: `inReadableSession` is true, and the event has no owner or the viewer is the owner.
 * @param alias as for `inReadableSession`. The table also has the column `owner`: the id of the
 * principal that owns the private artifact of the event, or null.
 */
export const readableEvent = (alias: string): string =>
  `${inReadableSession(alias)} AND (${alias}.owner IS NULL OR ${alias}.owner = ?)`
/** Returns the values of the parameters of `readableEvent`. */
export const eventViewerValues = (viewer: Viewer): Value[] => [...viewerValues(viewer), viewer.id]
/**
 * Returns a condition that is false for the rows of a session that a viewer may not read, and true
 * for all other rows.
 * @param alias the alias of a table with the columns `project` and `session`, which is null or the
 * id of a session. The view need not have this session.
 */
export const notInUnreadableSession = (
  alias: string,
): string => `NOT EXISTS (SELECT 1 FROM sessions s WHERE s.project = ${alias}.project
  AND s.id = ${alias}.session AND NOT ${visibleTo('s')})`
/**
 * Returns the values of the parameters of `visibleTo`, in order. The parameters of the other
 * conditions begin with the same values.
 */
export const viewerValues = ({ id, admin }: Viewer): Value[] => [id, id, admin ? 1 : 0, id]
