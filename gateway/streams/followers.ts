/**
 * Opens the followers of the sequences that clients of this gateway follow: events of runs,
 * channels and projects, and log lines of runs.
 */
import type { Refusal } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'
import { type Ask, Follower, type Page } from './follow.ts'
import { type Acquired, openFollowerPool } from './follower-pool.ts'
import { retryFrame } from './sse.ts'

/** A sequence that can be followed. */
export interface Source {
  /** Sources with the same key have the same sequence. */
  readonly key: string
  /** The comment that is sent as a keepalive. */
  readonly comment: string
  readonly ask: Ask
  /**
   * Fetches the empty page at the newest position, where clients without a cursor start. If the
   * source has no such function, they start at the beginning.
   */
  newest?(): Promise<Page | Refusal>
  /** Passes new items to the follower, until the returned function is called. */
  subscribe(follower: Follower): () => void
}

interface Followed {
  readonly follower: Follower
  close(): void
}
export interface Followers {
  /** Returns the follower of a source. It exists until every caller has released it. */
  acquire(source: Source): Acquired<Followed>
  /** Ends the streams of all clients. */
  stop(): void
}

/**
 * Time in milliseconds after which clients of a stopping gateway should reconnect: `least`, plus a
 * random part of `spread`, so that they do not all reconnect at the same time.
 */
const RETURN = { least: 100, spread: 1900 } as const

/** Returns the last frame that a stopping gateway sends to a client. */
export const farewellFrame = (world: Pick<World, 'random'>): string =>
  retryFrame(RETURN.least + ((world.random(1)[0] ?? 0) * RETURN.spread) / 255)

/** Creates an empty set of followers. */
export function openFollowers(world: World): Followers {
  const pool = openFollowerPool<Followed>(world)
  const open = (source: Source): Followed => {
    const follower = new Follower(
      source.ask,
      (ms, run) => world.later(ms, run),
      () => world.count.inc('stream_fallbacks'),
      (items) => world.count.inc('events_sent', items),
    )
    return { follower, close: source.subscribe(follower) }
  }
  return {
    acquire: (source) => pool.acquire(source.key, () => open(source)),
    stop() {
      for (const { follower } of pool.members()) follower.stop(() => farewellFrame(world))
    },
  }
}
