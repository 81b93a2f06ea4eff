/**
 * A pool of followers. All clients of a sequence share one follower, and so one subscription. A
 * follower exists while a client holds it, and periodically checks whether live entries were lost.
 * The code that opens a follower defines what it reads and how it writes to its clients.
 */
import type { World } from '../ports.ts'
import { every } from '../timing.ts'

/** A follower and the subscriptions that its clients share. */
interface Member {
  readonly follower: { check(): unknown }
  /** Ends the subscriptions of the follower. */
  close(): void
}
/** A follower in use; `release` must be called once the client has left. */
export interface Acquired<M extends Member> {
  readonly member: M
  release(): void
}
export interface FollowerPool<M extends Member> {
  /**
   * Returns the follower of a sequence, which exists until every caller has released it.
   * @param key identifies the sequence.
   * @param open creates the follower, if no client holds it yet.
   */
  acquire(key: string, open: () => M): Acquired<M>
  /** Returns the followers in use. */
  members(): readonly M[]
}

interface Entry<M> {
  readonly member: M
  users: number
  readonly stopChecks: () => void
}

/** Creates an empty pool. Each follower in use is checked every two keepalive intervals. */
export function openFollowerPool<M extends Member>(world: World): FollowerPool<M> {
  const entries = new Map<string, Entry<M>>()
  const add = (key: string, member: M): Entry<M> => {
    const check = () => void member.follower.check()
    const stopChecks = every(world, 2 * world.settings.keepalive, check)
    const entry = { member, users: 0, stopChecks }
    entries.set(key, entry)
    world.count.open('followers', 1)
    return entry
  }
  const remove = (key: string, { member, stopChecks }: Entry<M>): void => {
    entries.delete(key)
    stopChecks()
    member.close()
    world.count.open('followers', -1)
  }
  return {
    acquire(key, open) {
      const entry = entries.get(key) ?? add(key, open())
      entry.users++
      let held = true
      return {
        member: entry.member,
        release() {
          if (!held) return
          held = false
          if (--entry.users === 0) remove(key, entry)
        },
      }
    },
    members: () => [...entries.values()].map(({ member }) => member),
  }
}
