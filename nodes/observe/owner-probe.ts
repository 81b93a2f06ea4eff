/**
 * Holds requests that wait because no node currently serves their shard. The requests that wait for
 * a shard are retried one after another, to probe whether the shard has an owner again. Thousands
 * of requests that each retry four times a second would slow down the nodes that elect a leader or
 * take over the shard.
 */
import type { Clock, Random } from '../host/ports.ts'

/** Milliseconds between the first two probes of a subject, before jitter. */
const FIRST_PROBE_MS = 5
/** Maximum number of milliseconds between two probes of a subject, before jitter. */
const MAX_PROBE_MS = 50

interface Waiter {
  probe: (() => void) | undefined
}
interface Probed {
  readonly waiters: Waiter[]
  probes: number
  cancel: () => void
}

export class OwnerProbe {
  readonly #clock: Clock
  readonly #random: Random
  readonly #probed = new Map<string, Probed>()

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }
  /** Whether requests are waiting for a node to answer on a subject. */
  isProbing(subject: string): boolean {
    return this.#probed.has(subject)
  }
  /**
   * Makes a request wait until a node answers on the subject again.
   * @param probe retries the request. Called at most once: as a probe, or when a node has answered
   *   the probe of another request.
   * @returns a function that ends the wait.
   */
  wait(subject: string, probe: () => void): () => void {
    let probed = this.#probed.get(subject)
    if (!probed) {
      this.#probed.set(subject, (probed = { waiters: [], probes: 0, cancel: () => {} }))
      this.#next(subject, probed)
    }
    const waiter: Waiter = { probe }
    probed.waiters.push(waiter)
    return () => {
      waiter.probe = undefined
    }
  }
  /** Records that a node answered on a subject, and retries all waiting requests. */
  answered(subject: string): void {
    const probed = this.#probed.get(subject)
    if (!probed) return
    this.#probed.delete(subject)
    probed.cancel()
    for (const { probe } of probed.waiters) probe?.()
  }
  #next(subject: string, probed: Probed): void {
    const ms =
      Math.min(MAX_PROBE_MS, FIRST_PROBE_MS * 2 ** probed.probes++) *
      (0.75 + (this.#random.bytes(1)[0] ?? 0) / 512)
    probed.cancel = this.#clock.later(ms, () => {
      let first = probed.waiters.shift()
      while (first && !first.probe) first = probed.waiters.shift()
      if (!first) {
        this.#probed.delete(subject)
        return
      }
      this.#next(subject, probed)
      first.probe?.()
    })
  }
}
