/**
 * Numbers of rows of another table by a key, such as runs by status. They change when a row is
 * written, by comparison with the row that is stored, so they always equal the written rows. Rows
 * that change several times between two flushes cost nothing more.
 */
import type { Buffered } from '../store.ts'

/** Changes of tallies within a flush, by key. */
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
   * Writes the changes. `Store` flushes the buffers in the order of their creation, and the other
   * table's rows, whose buffer creates this one, come first.
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
