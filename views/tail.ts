/**
 * The newest frames of the feed in memory, so that whoever follows it at its end is answered without reading a table.
 * Frames lie in two generations; when the younger one is full, the older one is dropped.
 */
import type { ProjectRunEvent } from '../protocol/api/runs.ts'
import type { Open } from '../protocol/common.ts'
import type { Shown } from './timeline.ts'

/** What a frame is made of: its `data`, or, for a call of an action, the event that it tells of. */
export interface Frame {
  /** Cursor of the event. */
  readonly cursor: number
  /** Id of the run. */
  readonly run: string
  readonly kind: ProjectRunEvent['type']
  readonly data: Open | null
  readonly call: Shown | null
  /** Unix milliseconds. */
  readonly at: number
}

/** Frames by project. `after`: every frame beyond this cursor is here or in a younger generation. */
interface Generation { readonly after: number; readonly frames: Map<number, Frame[]>; count: number; size: number }
const generation = (after: number): Generation => ({ after, frames: new Map(), count: 0, size: 0 })

/** Frames, and characters of their payloads, that a generation holds at most, but for its last batch. */
const FRAMES = 2000
const SIZE = 4_000_000

export class FeedTail {
  #old = generation(0)
  #young = generation(0)
  #batch: { readonly project: number; readonly frame: Frame }[] = []
  /** Begin empty. @param current the cursor up to which everything is applied. */
  begin(current: number): void {
    this.#old = this.#young = generation(current)
    this.#batch = []
  }
  /** Add a frame of the present batch. @param project its number. */
  add(project: number, frame: Frame): void {
    this.#batch.push({ project, frame })
  }
  /** Tell how many characters of payloads the frames may hold on to. */
  weigh(size: number): void {
    this.#young.size += size
  }
  /** The present batch is applied, up to this cursor. */
  keep(current: number): void {
    for (const { project, frame } of this.#batch) {
      const frames = this.#young.frames.get(project)
      if (frames) frames.push(frame)
      else this.#young.frames.set(project, [frame])
      this.#young.count++
    }
    this.#batch = []
    if (this.#young.count <= FRAMES && this.#young.size <= SIZE) return
    this.#old = this.#young
    this.#young = generation(current)
  }
  /** The present batch failed. */
  undo(): void {
    this.#batch = []
  }
  /** Whether all frames after a cursor are here. */
  reaches(after: number): boolean {
    return after >= this.#old.after
  }
  /** Frames of a project after a cursor that `reaches`, at most `limit`, oldest first. */
  read(project: number, after: number, limit: number): Frame[] {
    const found = this.#old === this.#young ? [] : beyond(this.#old.frames.get(project), after, limit)
    return found.length < limit ? [...found, ...beyond(this.#young.frames.get(project), after, limit - found.length)] : found
  }
}
// Searched from the end, where followers are.
function beyond(frames: readonly Frame[] | undefined, after: number, limit: number): Frame[] {
  if (!frames) return []
  let from = frames.length
  while (from > 0 && (frames[from - 1] as Frame).cursor > after) from--
  return frames.slice(from, from + limit)
}
