/**
 * Counts of the rows of another table by a key, such as runs by status. A tally changes when a row
 * is written: the new row is compared with the stored row. Each tally therefore always equals the
 * number of stored rows with its key, and changing a row several times between two flushes adds no
 * cost.
 */
import type { Buffered } from '../write-back.ts'

/** Changes to tallies within a flush, by key. */
export class Tallies implements Buffered {
  readonly #changes = new Map<string, number>()
  readonly #write: (key: string, change: number) => void
  /** @param write adds a number, which may be negative, to the stored tally. */
  constructor(write: (key: string, change: number) => void) {
    this.#write = write
  }
  /** Nothing waits between flushes. */
  readonly waiting = 0
  add(key: string, change: number): void {
    this.#changes.set(key, (this.#changes.get(key) ?? 0) + change)
  }
  /**
   * Writes the changes. `Store` flushes the buffers in the order of their creation. This buffer is
   * created while the buffer of the other table is flushed, so the rows of that table are written
   * first.
   */
  flush(): void {
    for (const [key, change] of this.#changes) if (change !== 0) this.#write(key, change)
    this.#changes.clear()
  }
  /** Changes belong to a flush, not to a batch of entries. */
  keep(): void {}
  undo(): void {}
  forget(): void {
    this.#changes.clear()
  }
}
