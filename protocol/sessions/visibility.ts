/**
 * The effective visibility of sessions. A private session is readable by its creator, by principals
 * that sent input to it, by its agent and by principals with the permission `project.admin`. A
 * session of a channel is readable by the readers of the channel, regardless of the visibility in
 * its record.
 *
 * Earlier releases stored `private` as the default visibility of sessions that requests created,
 * and did not enforce it. The visibility of such a session therefore counts only if the request
 * specified it; see docs/adr/0006-private-sessions.md.
 */
import { channelOfKey } from '../channels/exchange.ts'
import type { Session } from './schema.ts'

type Visible = Pick<Session, 'visibility' | 'session_key' | 'origin'>

/**
 * Returns the record with its effective visibility.
 * @param requested whether the request that created the session specified its visibility.
 */
export function withVisibility(record: Session, requested: boolean | undefined): Session {
  const { visibility, session_key, origin } = record
  const defaulted =
    visibility === 'private' &&
    !requested &&
    origin === 'api' &&
    channelOfKey(session_key) === undefined
  return defaulted ? { ...record, visibility: 'project' } : record
}

/**
 * Whether the session is private. False for a session of a channel, which the readers of the
 * channel can read.
 */
export const isPrivate = ({ visibility, session_key }: Visible): boolean =>
  visibility === 'private' && channelOfKey(session_key) === undefined
