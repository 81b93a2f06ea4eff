/**
 * Limits the time that each frame spends on rendering lines of a virtual list. A line for which no
 * time is left keeps its content and is rendered in a later frame. This module needs no browser.
 *
 * Invariant: each frame renders at least one of the lines that must change, so all of them are
 * rendered eventually.
 */
import type { Range } from './visible-range.ts'

/**
 * Milliseconds per frame for rendering lines. All scripts together should take at most 8 ms of each
 * frame. This includes preparing the list and adding its pages.
 */
const RENDER_MS = 2

/** A pending change to a line. */
interface LineChange {
  /** The key of the item that the line shows. */
  readonly shown: string
  /** The key of the item that the line should show. */
  readonly next: string
  /** The index of the item that the line should show. */
  readonly index: number
}

/** Decides which lines are rendered in the current frame. */
export class RenderBudget {
  #end = 0
  #needed: Range = { first: 0, end: 0 }
  #rendered = 0
  #postponed = new Map<string, string>()
  #incomplete = false

  /**
   * The postponed lines. The key of the item that a line should show is mapped to the key of the
   * item that the line still shows.
   */
  get postponed(): ReadonlyMap<string, string> {
    return this.#postponed
  }
  /** Whether a needed line was postponed, so that another frame must follow. */
  get incomplete(): boolean {
    return this.#incomplete
  }
  /**
   * Starts a frame.
   * @param now time in milliseconds.
   * @param needed the lines to render while there is time. All other lines are postponed.
   */
  begin(now: number, needed: Range): void {
    this.#end = now + RENDER_MS
    this.#needed = needed
    this.#rendered = 0
    this.#postponed = new Map()
    this.#incomplete = false
  }
  /** Returns whether a line may be rendered now, and postpones it otherwise. */
  allows({ shown, next, index }: LineChange, now: number): boolean {
    const isNeeded = index >= this.#needed.first && index < this.#needed.end
    if (isNeeded && (this.#rendered === 0 || now < this.#end)) {
      this.#rendered++
      return true
    }
    this.#postponed.set(next, shown)
    this.#incomplete ||= isNeeded
    return false
  }
}
