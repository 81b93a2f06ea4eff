/**
 * Who sees a session. What is said to an agent in a channel is said in a session, and whoever may not read the channel may not
 * read, change or follow that session either: for them it is not there. Any other session is open to the project.
 */
import { isRefusal, refuse, type Refusal } from '../../protocol/errors.ts'
import type { ViewQuestions } from '../../protocol/view-questions.ts'
import { viewerOf } from '../channels.ts'
import type { Caller } from '../authenticate.ts'
import type { World } from '../ports.ts'

/** A session, or a turn whose session nobody named. */
export type Named = ViewQuestions['session_access']['input']['of']
/** The session that the slots of a path name. */
export const namedIn = ({
  session_id,
  turn_id,
}: Readonly<Record<string, string>>): Named | undefined =>
  session_id !== undefined ? { session_id } : turn_id !== undefined ? { turn_id } : undefined

/** Sessions that are remembered to be of no channel, which they always are. */
const REMEMBERED = 10_000

export interface Sight {
  /** `not_found` when the caller does not see the session. One that is not there is nobody's business here. */
  check(project: string, of: Named, caller: Caller): Promise<Refusal | undefined>
  /** Be told when it may have changed who sees a session, until the returned function is called. */
  onChange(
    project: string,
    session_id: string,
    caller: Caller,
    changed: () => void,
  ): Promise<() => void>
}
/** Begin to look. */
export function openSight(world: Pick<World, 'view' | 'live'>): Sight {
  const plain = new Set<string>()
  const keyOf = (project: string, of: Named) => `${project}/${Object.values(of).join()}`
  const ask = async (project: string, of: Named, caller: Caller) =>
    (await world.view(project, 'session_access', {
      of,
      viewer: viewerOf(caller),
    })) as ViewQuestions['session_access']['reply']
  return {
    check: async (project, of, caller) => {
      const key = keyOf(project, of)
      if (plain.has(key)) return undefined
      const found = await ask(project, of, caller)
      if (isRefusal(found)) return found
      if (found.closed)
        return refuse(
          'not_found',
          { resource: 'session' },
          'There is no such session in this project.',
        )
      if (!found.known || found.channel !== undefined) return undefined
      if (plain.size >= REMEMBERED) plain.clear()
      plain.add(key)
      return undefined
    },
    onChange: async (project, session_id, caller, changed) => {
      const of = { session_id }
      const found = plain.has(keyOf(project, of)) ? undefined : await ask(project, of, caller)
      if (!found || isRefusal(found) || found.channel === undefined) return () => {}
      return world.live(project, 'channel', found.channel, ({ entry }) => {
        if (entry.events.some(({ type }) => SIGHT.has(type))) changed()
      })
    },
  }
}
/** Events of a channel that may change who reads it. */
const SIGHT: ReadonlySet<string> = new Set(['member.removed', 'channel.updated', 'channel.deleted'])
