/**
 * Requests that wait because no node serves their shard at the moment. Of all that wait for one shard, one at a time asks
 * whether it has an owner again. Thousands of requests that each ask four times a second would keep the nodes busy that elect
 * a leader or take the shard over.
 */
import type { Clock, Random } from '../host/ports.ts'

/** Milliseconds between two probes of one subject: the first, and at most. */
const FIRST_PROBE_MS = 5
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
  /** Whether a request waits for an owner of a subject. */
  isProbing(subject: string): boolean {
    return this.#probed.has(subject)
  }
  /**
   * Wait because nothing answers on a subject. @param probe asks again; called once, in turn or when another probe was answered.
   * @returns a function that ends the waiting.
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
  /** A node answered on a subject: every request that waits asks now. */
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
