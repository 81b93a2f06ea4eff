/** Many things that each have a time limit, watched by one timer. A limit is kept to within `LOOK` milliseconds, never too early. */

/** Milliseconds between two looks at what is overdue. */
const LOOK = 50

/** Something with a time limit. */
export interface Limited {
  /** When its time is over, as `performance.now()`. */
  readonly until: number
  /** Called once, when its time is over before it was deleted. */
  over(): void
}

export class Overdue<T extends Limited> {
  readonly #waiting = new Set<T>()
  #looking: NodeJS.Timeout | undefined

  add(limited: T): void {
    this.#waiting.add(limited)
    if (this.#looking === undefined) this.#looking = setTimeout(this.#look, LOOK)
  }
  /** It is done. Whether it was still waiting. */
  delete(limited: T): boolean {
    return this.#waiting.delete(limited)
  }
  /** Everything that still waits is over. */
  end(): void {
    for (const limited of this.#waiting) this.#end(limited)
  }
  #end(limited: T): void {
    this.#waiting.delete(limited)
    limited.over()
  }
  readonly #look = (): void => {
    const now = performance.now()
    for (const limited of this.#waiting) if (limited.until <= now) this.#end(limited)
    this.#looking = this.#waiting.size > 0 ? setTimeout(this.#look, LOOK) : undefined
  }
}
