/**
 * Cleans up the object store: removes chunks of values whose writer died, soon after the node
 * starts and then periodically. Several nodes may do so concurrently.
 */
import type { Log } from '../../gateway/ports.ts'
import type { Clock } from '../host/ports.ts'
import { sweepChunks } from '../nats/blobs.ts'
import type { Nats } from '../nats/server/connect.ts'

/**
 * Milliseconds until the first sweep and between two sweeps, and the minimum age of chunks that are
 * removed.
 */
const FIRST = 120_000
const SWEEP_EVERY_MS = 6 * 3_600_000
const MIN_AGE_MS = 3_600_000

/** Starts sweeping. Returns a function that stops it. */
export function startSweeping(nats: Nats, clock: Clock, log: Log): () => Promise<void> {
  let stopped = false
  let cancel = () => {}
  let sweeping: Promise<void> = Promise.resolve()
  const sweep = async () => {
    try {
      const values = await sweepChunks(nats, clock.now(), MIN_AGE_MS)
      if (values > 0)
        log.info(
          { event: 'object_store_swept', values },
          'incomplete values removed from the object store',
        )
    } catch (error) {
      log.warn({ event: 'object_store_sweep_failed', err: error }, 'object store sweep failed')
    }
    plan(SWEEP_EVERY_MS)
  }
  const plan = (ms: number) => {
    if (!stopped)
      cancel = clock.later(ms, () => {
        sweeping = sweep()
      })
  }
  plan(FIRST)
  return async () => {
    stopped = true
    cancel()
    await sweeping
  }
}
