/**
 * The only source of randomness in a simulation. The seed determines everything, and each purpose
 * has a separate random stream.
 */
import { hashOf } from '../../../protocol/subjects.ts'

/** A reproducible stream of random numbers (mulberry32). */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }
  /** Returns a 32-bit unsigned integer. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let x = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return (x ^ (x >>> 14)) >>> 0
  }
  /** Returns a number in [0, 1). */
  unit(): number {
    return this.next() / 0x1_0000_0000
  }
  between(low: number, high: number): number {
    return low + this.unit() * (high - low)
  }
  /** Returns an integer in [0, n). */
  below(n: number): number {
    return Math.floor(this.unit() * n)
  }
  chance(p: number): boolean {
    return this.unit() < p
  }
  pick<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)]
  }
  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.next() & 255)
  }
}

/** Returns a stream for one purpose, independent of all other streams of the seed. */
export const fork = (seed: number, use: string): Dice => new Dice(hashOf(`${seed}/${use}`))
