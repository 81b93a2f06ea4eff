/**
 * Checks whether a caller may read a session. The readers of a channel may read its sessions, and
 * protocol/sessions/visibility.ts defines who may read a private session. Any other session is
 * readable by every caller in the project. A caller that may not read a session receives the same
 * answer as for a session that does not exist. The view decides. This file only caches which
 * sessions every caller may read.
 */
import type { Shape } from '../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { Caller } from '../auth/authenticate.ts'
import { namesOf } from '../auth/people.ts'
import { viewerOf } from '../auth/viewer.ts'
import type { Directory } from '../directory.ts'
import type { World } from '../ports.ts'

/** A session by its id, or by the id of one of its turns or interactions. */
export type SessionReference =
  | { readonly session_id: string }
  | { readonly turn_id: string }
  | { readonly interaction_id: string }
/**
 * Returns the id by which a path refers to a session: the id of the session, of one of its turns
 * or, for rows whose `id` identifies an interaction, of the interaction. Returns undefined if the
 * path refers to no session.
 */
export const sessionReferenceOf = (
  { session_id, turn_id, id }: Readonly<Record<string, string>>,
  { locateBy }: Pick<Shape, 'locateBy'>,
): SessionReference | undefined => {
  if (session_id !== undefined) return { session_id }
  if (turn_id !== undefined) return { turn_id }
  return id !== undefined && locateBy === 'interaction' ? { interaction_id: id } : undefined
}

/**
 * Maximum number of cached references to sessions that every caller in the project may read. The
 * references remain valid: the channel of a session is determined by its key, which never changes,
 * and the visibility of a session without a channel never changes either.
 */
const MAX_CACHED = 10_000

/** The visibility check of a gateway. */
export interface SessionVisibility {
  /**
   * Returns `not_found` if the caller may not read the session, undefined if the caller may read
   * it, or the refusal of the view. Also returns undefined for a session that does not exist,
   * because other code handles this case.
   */
  check(project: string, of: SessionReference, caller: Caller): Promise<Refusal | undefined>
  /**
   * Calls `changed` when an event of the session's channel may have revoked the caller's access,
   * until the returned function is called. Does nothing for a session without a channel.
   */
  onChange(
    project: string,
    session_id: string,
    caller: Caller,
    changed: () => void,
  ): Promise<() => void>
}
/** Creates the visibility check of a gateway, with an empty cache. */
export function openSessionVisibility({
  world,
  directory,
}: {
  readonly world: Pick<World, 'view' | 'live'>
  readonly directory: Directory
}): SessionVisibility {
  const plain = new Set<string>()
  const keyOf = (project: string, of: SessionReference) => `${project}/${Object.values(of).join()}`
  const ask = async (project: string, of: SessionReference, caller: Caller) => {
    const names = 'interaction_id' in of ? await namesOf({ directory }, project, caller) : []
    if (isRefusal(names)) return names
    return await world.view(project, 'session_access', {
      of: 'interaction_id' in of ? extended(of, { names }) : of,
      viewer: viewerOf(caller),
    })
  }
  return {
    check: async (project, of, caller) => {
      const key = keyOf(project, of)
      if (plain.has(key)) return undefined
      const found = await ask(project, of, caller)
      if (isRefusal(found)) return found
      if (found.closed)
        return 'interaction_id' in of ? recordNotFound('interaction') : recordNotFound('session')
      if (!found.known || found.restricted || found.channel !== undefined) return undefined
      if (plain.size >= MAX_CACHED) plain.clear()
      plain.add(key)
      return undefined
    },
    onChange: async (project, session_id, caller, changed) => {
      const of = { session_id }
      const found = plain.has(keyOf(project, of)) ? undefined : await ask(project, of, caller)
      if (!found || isRefusal(found) || found.channel === undefined) return () => {}
      return world.live(project, 'channel', found.channel, ({ entry }) => {
        if (entry.events.some(({ type }) => VISIBILITY_EVENTS.has(type))) changed()
      })
    },
  }
}
/** Returns the refusal for an unknown record, or for one that the caller may not read. */
export const recordNotFound = (resource: 'session' | 'interaction'): Refusal =>
  refuse('not_found', { resource }, `There is no such ${resource} in this project.`)
/** The types of channel events that may revoke a principal's access to the channel. */
const VISIBILITY_EVENTS: ReadonlySet<string> = new Set([
  'member.removed',
  'channel.updated',
  'channel.deleted',
])
