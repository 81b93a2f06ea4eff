/**
 * Delays requests and jobs while the node's own lease is stale. If the machine is briefly
 * overloaded, its responses are therefore slow, but not errors. The wait is short, because another
 * node may have a fresh lease: a refused client can retry there, and a refused job returns to its
 * queue.
 */

import type { MaybePromise } from './maybe-promise.ts'
import type { World } from './ports.ts'

/** Maximum time in milliseconds for which a request or a job waits. */
const TIMEOUT_MS = 3000
/** Milliseconds between two checks of the lease. */
const CHECK_EVERY_MS = 50

/**
 * Returns true once the lease is fresh, usually synchronously, and false when the wait times out.
 */
export type LeaseGate = () => MaybePromise<boolean>

/**
 * Creates the gate of a node. A single timer checks the lease for all waiting requests and jobs.
 */
export function openLeaseGate(world: Pick<World, 'fresh' | 'later'>): LeaseGate {
  let waiting: { looks: number; readonly done: (fresh: boolean) => void }[] = []
  const look = (): void => {
    const fresh = world.fresh()
    const all = waiting
    waiting = fresh ? [] : all.filter((one) => --one.looks > 0)
    if (waiting.length > 0) world.later(CHECK_EVERY_MS, look)
    for (const { looks, done } of all) if (fresh || looks <= 0) done(fresh)
  }
  return () =>
    world.fresh() ||
    new Promise((done) => {
      if (waiting.push({ looks: TIMEOUT_MS / CHECK_EVERY_MS, done }) === 1)
        world.later(CHECK_EVERY_MS, look)
    })
}
