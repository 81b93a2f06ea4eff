/**
 * Who waits for a shard that nobody serves at the moment. One at a time knocks for all: thousands of requests that each ask again
 * four times a second would keep busy the very nodes that elect a leader or take the shard over.
 */
import type { Clock, Random } from './host/ports.ts'

/** Milliseconds between two knocks at one door: the first, and at most. */
const FIRST = 5
const LONGEST = 50

interface Waiting {
  knock: (() => void) | undefined
}
interface Door {
  readonly waiting: Waiting[]
  knocks: number
  cancel: () => void
}

export class Doors {
  readonly #clock: Clock
  readonly #random: Random
  readonly #doors = new Map<string, Door>()

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }
  /** Whether somebody waits for who serves a subject. */
  closed(subject: string): boolean {
    return this.#doors.has(subject)
  }
  /** Wait because nobody answers for a subject. @param knock asks; called once, by turns or when the door opens. @returns ends the waiting. */
  wait(subject: string, knock: () => void): () => void {
    let door = this.#doors.get(subject)
    if (!door) {
      this.#doors.set(subject, (door = { waiting: [], knocks: 0, cancel: () => {} }))
      this.#next(subject, door)
    }
    const one: Waiting = { knock }
    door.waiting.push(one)
    return () => {
      one.knock = undefined
    }
  }
  /** Somebody answers for a subject: everybody may ask. */
  open(subject: string): void {
    const door = this.#doors.get(subject)
    if (!door) return
    this.#doors.delete(subject)
    door.cancel()
    for (const { knock } of door.waiting) knock?.()
  }
  #next(subject: string, door: Door): void {
    const ms =
      Math.min(LONGEST, FIRST * 2 ** door.knocks++) * (0.75 + (this.#random.bytes(1)[0] ?? 0) / 512)
    door.cancel = this.#clock.later(ms, () => {
      let first = door.waiting.shift()
      while (first && !first.knock) first = door.waiting.shift()
      if (!first) {
        this.#doors.delete(subject)
        return
      }
      this.#next(subject, door)
      first.knock?.()
    })
  }
}
