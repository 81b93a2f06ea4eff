/** The clock and the source of randomness of a process. */
import { randomBytes } from 'node:crypto'
import type { Clock, Random } from './host/ports.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  later: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
/** Creates a source of random bytes, which are generated in pools of at least 8 KiB. */
export function systemRandom(): Random {
  let pool = Buffer.alloc(0)
  let at = 0
  return {
    bytes: (length) => {
      if (at + length > pool.length) {
        pool = randomBytes(Math.max(8192, length))
        at = 0
      }
      at += length
      return pool.subarray(at - length, at)
    },
  }
}
