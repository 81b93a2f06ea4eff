/**
 * Requests that come while the gateway's own lease is stale wait together: a machine that is busy for a moment makes them slow,
 * not wrong. Not for long: another gateway may be in touch, and whoever is turned away asks there.
 */
import type { World } from './ports.ts'
import type { MaybePromise } from './maybe-promise.ts'

/** Milliseconds that a request waits at most, and between looks. */
const WAIT = 3000
const LOOK = 50

/** True as soon as the gateway may judge by what it knows, mostly at once; false when that takes too long. */
export type LeaseGate = () => MaybePromise<boolean>

/** One look for all who wait, however many. */
export function openLeaseGate(world: World): LeaseGate {
  let waiting: { looks: number; readonly done: (fresh: boolean) => void }[] = []
  const look = (): void => {
    const fresh = world.fresh()
    const all = waiting
    waiting = fresh ? [] : all.filter((one) => --one.looks > 0)
    if (waiting.length > 0) world.later(LOOK, look)
    for (const { looks, done } of all) if (fresh || looks <= 0) done(fresh)
  }
  return () =>
    world.fresh() ||
    new Promise((done) => {
      if (waiting.push({ looks: WAIT / LOOK, done }) === 1) world.later(LOOK, look)
    })
}
