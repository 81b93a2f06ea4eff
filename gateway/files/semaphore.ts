/**
 * A counting semaphore, for bytes of memory or for turns. Callers wait in FIFO order while their
 * units exceed the free capacity.
 */

export interface Semaphore {
  /**
   * Resolves when this many units are reserved. The returned function releases them; calling it
   * again has no effect.
   */
  acquire(units: number): Promise<() => void>
  /**
   * Reserves this many units immediately and returns the function that releases them. Returns
   * undefined when they are not free, or when callers of `acquire` wait.
   */
  tryAcquire(units: number): (() => void) | undefined
  /** Number of reserved units. */
  readonly held: number
}

/**
 * Creates a semaphore.
 * @param size number of units. A request for more units is granted when no units are in use.
 */
export function createSemaphore(size: number): Semaphore {
  let held = 0
  const line: { readonly units: number; readonly go: () => void }[] = []
  const admit = () => {
    for (
      let first = line[0];
      first && (held === 0 || held + first.units <= size);
      first = line[0]
    ) {
      line.shift()
      held += first.units
      first.go()
    }
  }
  const releaseOf = (units: number): (() => void) => {
    let inside = true
    return () => {
      if (!inside) return
      inside = false
      held -= units
      admit()
    }
  }
  return {
    acquire: async (units) => {
      await new Promise<void>((go) => {
        line.push({ units, go })
        admit()
      })
      return releaseOf(units)
    },
    tryAcquire(units) {
      if (line.length > 0 || (held > 0 && held + units > size)) return undefined
      held += units
      return releaseOf(units)
    },
    get held() {
      return held
    },
  }
}
