/**
 * Opens the followers of the sessions that clients of this gateway follow, and fetches pages of
 * transcripts.
 */
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type {
  TranscriptPage,
  TranscriptQuestion,
} from '../../../protocol/sessions/transcript/pages.ts'
import type { World } from '../../ports.ts'
import { type Acquired, openFollowerPool } from '../../streams/follower-pool.ts'
import { sleep } from '../../timing.ts'
import type { Dialect } from './change.ts'
import { SessionFollower } from './follower.ts'
import { sealTranscriptCursor } from './transcript-cursor.ts'
import { numberedDialect } from './v1.ts'
import { transcriptDialect } from './v2.ts'

interface Followed {
  readonly follower: SessionFollower
  readonly dialects: Readonly<Record<Dialect['name'], Dialect>>
  close(): void
}
export interface FollowedSessions {
  /** Returns the follower of a session. It exists until every caller has released it. */
  acquire(project: string, session_id: string): Acquired<Followed>
  /** Ends the streams of all clients. */
  stop(): void
}

/** Delays in milliseconds between queries to a view that has not reached the reader's cursor. */
const BEHIND = [10, 50, 200, 500, 1000]
/**
 * Repeats a query until the view has reached the reader's cursor. A view may lag behind the cursor
 * if it has read the last committed position from a replaced stream leader. If the reader's cursor
 * is still ahead after all attempts, the journal has lost its end, for example because a backup was
 * restored. The page then begins at the start of the session, so that the reader receives every
 * record that it may lack.
 * @param ask queries a page, from the start of the session if `restart` is set.
 */
export async function queryUntilCurrent(
  ask: (restart?: true) => Promise<TranscriptPage | Refusal>,
  pause: (ms: number) => Promise<void>,
): Promise<TranscriptPage | Refusal> {
  for (const ms of BEHIND) {
    const page = await ask()
    if (isRefusal(page) || page.after <= page.revision) return page
    await pause(ms)
  }
  const page = await ask()
  return isRefusal(page) || page.after <= page.revision ? page : ask(true)
}
/**
 * Fetches a page of a transcript. The view first applies everything up to the cursor `fresh` or,
 * without `fresh`, everything that was committed before the query.
 */
export const askPage = (
  world: World,
  project: string,
  question: TranscriptQuestion,
  fresh?: number,
): Promise<TranscriptPage | Refusal> =>
  queryUntilCurrent(
    (restart) =>
      world.view(
        project,
        'session.transcript',
        restart ? { ...question, after: 0 } : question,
        fresh,
      ),
    (ms) => sleep(world, ms),
  )

/** Creates an empty set of followed sessions. */
export function openFollowedSessions(world: World): FollowedSessions {
  const pool = openFollowerPool<Followed>(world)
  const { age, idle } = world.settings.sessions

  const open = (project: string, session_id: string): Followed => {
    const follower = new SessionFollower({
      ask: (question, fresh) => askPage(world, project, { ...question, session_id }, fresh),
      shown: (message_id) => world.previewed(project, message_id),
      now: () => world.now(),
      later: (ms, run) => world.later(ms, run),
      age,
      countFallback: () => world.count.inc('stream_fallbacks'),
      countSent: (changes) => world.count.inc('events_sent', changes),
    })
    const stops = [
      world.live(project, 'session', session_id, (placed) => follower.hear(placed)),
      world.onPreview(project, session_id, (previews) => follower.preview(previews)),
    ]
    return {
      follower,
      dialects: {
        v1: numberedDialect(session_id, idle),
        v2: transcriptDialect(
          session_id,
          (revision) => sealTranscriptCursor(world, project, session_id, revision),
          idle,
        ),
      },
      close() {
        for (const stop of stops) stop()
        follower.stop()
      },
    }
  }
  return {
    acquire: (project, session_id) =>
      pool.acquire(`${project} ${session_id}`, () => open(project, session_id)),
    stop() {
      for (const { follower } of pool.members()) follower.stop()
    },
  }
}
