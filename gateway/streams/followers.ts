/**
 * The sequences that clients of this gateway follow. Each sequence has one follower, and so one
 * subscription.
 */
import type { Refusal } from '../../protocol/errors.ts'
import type { World } from '../ports.ts'
import { type Ask, Follower, type Page } from './follow.ts'
import { retryFrame } from './sse.ts'

/** A sequence that can be followed. */
export interface Source {
  /** Sources with the same key are the same sequence. */
  readonly key: string
  /** The comment that keeps a quiet stream alive. */
  readonly comment: string
  readonly ask: Ask
  /**
   * Queries the empty page at the newest position, for clients that want only new items. Without
   * this function, clients start at the beginning.
   */
  newest?(): Promise<Page | Refusal>
  /** Passes new items to the follower, until the returned function is called. */
  subscribe(follower: Follower): () => void
}

/** A follower in use, and the function that releases it. */
interface Hold {
  readonly follower: Follower
  release(): void
}
export interface Followers {
  /** Returns the follower of a source; it exists until every caller has released it. */
  hold(source: Source): Hold
  /** Ends the streams of all clients. */
  stop(): void
}

/**
 * Milliseconds after which clients of a stopping gateway should reconnect, spread so that they do
 * not all return at once.
 */
const RETURN = { least: 100, spread: 1900 } as const

/**
 * Returns an empty set of followers. Each follower periodically checks whether live entries were
 * lost.
 */
export function openFollowers(world: World): Followers {
  const followed = new Map<
    string,
    { readonly follower: Follower; users: number; readonly close: () => void }
  >()

  const open = (source: Source) => {
    const follower = new Follower(
      source.ask,
      (ms, run) => world.later(ms, run),
      () => world.count.inc('stream_fallbacks'),
      (items) => world.count.inc('events_sent', items),
    )
    const unsubscribe = source.subscribe(follower)
    let cancel = () => {}
    const look = () => {
      cancel = world.later(2 * world.settings.keepalive, () => {
        follower.check()
        look()
      })
    }
    look()
    world.count.open('followers', 1)
    const close = () => {
      cancel()
      unsubscribe()
      world.count.open('followers', -1)
    }
    return { follower, users: 0, close }
  }
  return {
    hold(source) {
      const entry = followed.get(source.key) ?? open(source)
      followed.set(source.key, entry)
      entry.users++
      let held = true
      return {
        follower: entry.follower,
        release() {
          if (!held) return
          held = false
          if (--entry.users > 0) return
          followed.delete(source.key)
          entry.close()
        },
      }
    },
    stop() {
      const farewell = () =>
        retryFrame(RETURN.least + ((world.random(1)[0] ?? 0) * RETURN.spread) / 255)
      for (const { follower } of [...followed.values()]) follower.stop(farewell)
    },
  }
}
