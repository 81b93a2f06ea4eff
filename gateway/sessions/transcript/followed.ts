/** The sessions that this gateway's clients follow: one follower, and one subscription, for each. */
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type {
  TranscriptPage,
  TranscriptQuestion,
} from '../../../protocol/sessions/transcript/pages.ts'
import type { World } from '../../ports.ts'
import { sealTranscriptCursor } from './transcript-cursor.ts'
import type { Dialect } from './change.ts'
import { SessionFollower } from './follower.ts'
import { numberedDialect } from './v1.ts'
import { transcriptDialect } from './v2.ts'

interface Followed {
  readonly follower: SessionFollower
  readonly dialects: Readonly<Record<Dialect['name'], Dialect>>
  users: number
  close(): void
}
export interface FollowedSessions {
  /** The follower of a session; it lives until everybody who asked for it has released it. */
  hold(
    project: string,
    session_id: string,
  ): Pick<Followed, 'follower' | 'dialects'> & { release(): void }
  /** End every client. */
  stop(): void
}

/** Milliseconds between tries to get a page that is no older than its reader. */
const BEHIND = [10, 50, 200, 500, 1000]
/**
 * A page that is no older than its reader. "Committed by now" is what a view was told by the stream's leader, who may have been
 * replaced. A reader who stays ahead has a cursor from a time that was restored away, and is given what there is.
 */
export async function patient(
  ask: () => Promise<TranscriptPage | Refusal>,
  pause: (ms: number) => Promise<void>,
): Promise<TranscriptPage | Refusal> {
  for (const ms of BEHIND) {
    const page = await ask()
    if (isRefusal(page) || page.after <= page.revision) return page
    await pause(ms)
  }
  return ask()
}
/** Ask for a page of a transcript. `fresh`: it must contain everything up to this cursor; absent: everything committed by now. */
export const askPage = (
  world: World,
  project: string,
  question: TranscriptQuestion,
  fresh?: number,
): Promise<TranscriptPage | Refusal> =>
  patient(
    () =>
      world.view(project, 'session.transcript', question, fresh) as Promise<
        TranscriptPage | Refusal
      >,
    (ms) => new Promise((resolve) => world.later(ms, resolve)),
  )

/** No sessions yet. */
export function openFollowedSessions(world: World): FollowedSessions {
  const followed = new Map<string, Followed>()
  const { age, idle } = world.settings.sessions

  const open = (project: string, session_id: string): Followed => {
    const follower = new SessionFollower({
      ask: (question, fresh) => askPage(world, project, { ...question, session_id }, fresh),
      shown: (message_id) => world.previewed(project, message_id),
      now: () => world.now(),
      later: (ms, run) => world.later(ms, run),
      age,
      slow: () => world.count.inc('stream_fallbacks'),
      given: (changes) => world.count.inc('events_sent', changes),
    })
    const stops = [
      world.live(project, 'session', session_id, (placed) => follower.hear(placed)),
      world.onPreview(project, session_id, (pieces) => follower.preview(pieces)),
    ]
    let cancel = () => {}
    const look = () => {
      cancel = world.later(2 * world.settings.keepalive, () => {
        void follower.check()
        look()
      })
    }
    look()
    world.count.open('followers', 1)
    return {
      follower,
      users: 0,
      dialects: {
        v1: numberedDialect(session_id, idle),
        v2: transcriptDialect(
          session_id,
          (revision) => sealTranscriptCursor(world, project, session_id, revision),
          idle,
        ),
      },
      close() {
        cancel()
        for (const stop of stops) stop()
        follower.stop()
        world.count.open('followers', -1)
      },
    }
  }
  return {
    hold(project, session_id) {
      const key = `${project} ${session_id}`
      const entry = followed.get(key) ?? open(project, session_id)
      followed.set(key, entry)
      entry.users++
      let held = true
      const release = () => {
        if (!held) return
        held = false
        if (--entry.users > 0) return
        followed.delete(key)
        entry.close()
      }
      return { follower: entry.follower, dialects: entry.dialects, release }
    },
    stop() {
      for (const { follower } of [...followed.values()]) follower.stop()
    },
  }
}
