/**
 * Keeps the frames that wait to be stored, and the newest frames of the feed, in memory. A follower
 * at the end of the feed is therefore answered without reading a table. The frames are divided into
 * two generations. When the younger generation is full, the older generation is dropped.
 */
import { type Frame, packFrames } from './frames.ts'

/**
 * Frames by project. `after`: every frame after this cursor is in this generation or in a younger
 * one.
 */
interface Generation {
  readonly after: number
  readonly frames: Map<number, Frame[]>
  count: number
  size: number
}
const generation = (after: number): Generation => ({ after, frames: new Map(), count: 0, size: 0 })
function push(frames: Map<number, Frame[]>, project: number, frame: Frame): void {
  const known = frames.get(project)
  if (known) known.push(frame)
  else frames.set(project, [frame])
}

/**
 * Maximum number of frames in a generation. The last batch of a generation may exceed this number.
 * A generation covers about ten seconds of a busy project. A reader that falls further behind is
 * answered from the table. That costs several times as much, so the reader falls even further
 * behind.
 */
const MAX_FRAMES = 16_000
/** Maximum number of payload characters in a generation. The last batch may exceed this number. */
const MAX_CHARACTERS = 16_000_000
/**
 * Maximum number of frames in a stored row. Frames of one event are never split, so a row may
 * exceed this number.
 */
const MAX_FRAMES_PER_ROW = 32

export class FeedTail {
  #old = generation(0)
  #young = generation(0)
  #batch: { readonly project: number; readonly frame: Frame }[] = []
  /** Frames of applied batches that are not stored yet, by the number of the project. */
  #unstored = new Map<number, Frame[]>()
  /**
   * Discards all frames.
   * @param current the cursor up to which everything is applied and stored.
   */
  begin(current: number): void {
    this.#old = this.#young = generation(current)
    this.#batch = []
    this.#unstored = new Map()
  }
  /**
   * Adds a frame of the current batch.
   * @param project the project's number.
   */
  add(project: number, frame: Frame): void {
    this.#batch.push({ project, frame })
  }
  /** Adds the size of payloads that frames in memory may refer to, in characters. */
  weigh(size: number): void {
    this.#young.size += size
  }
  /** Accepts the current batch, which is applied up to this cursor. */
  keep(current: number): void {
    for (const { project, frame } of this.#batch) {
      push(this.#young.frames, project, frame)
      push(this.#unstored, project, frame)
      this.#young.count++
    }
    this.#batch = []
    if (this.#young.count <= MAX_FRAMES && this.#young.size <= MAX_CHARACTERS) return
    this.#old = this.#young
    this.#young = generation(current)
  }
  /** Discards the current batch, which failed. */
  undo(): void {
    this.#batch = []
  }
  /**
   * Divides the frames that are not stored yet into rows, and passes each row to `store`: the
   * cursor of its last frame, and its frames as JSON.
   */
  flush(store: (project: number, seq: number, frames: string) => void): void {
    for (const [project, frames] of this.#unstored) {
      for (let from = 0; from < frames.length; ) {
        let to = Math.min(from + MAX_FRAMES_PER_ROW, frames.length)
        // All frames of one event are put into the same row, so that a cursor never separates them.
        while (to < frames.length && frames[to]?.cursor === frames[to - 1]?.cursor) to++
        const row = frames.slice(from, to)
        store(project, row.at(-1)?.cursor ?? 0, packFrames(row))
        from = to
      }
    }
    this.#unstored = new Map()
  }
  /** Whether all frames after a cursor are in memory. */
  reaches(after: number): boolean {
    return after >= this.#old.after
  }
  /**
   * Returns at most `limit` frames of a project after a cursor, oldest first. `reaches` must return
   * true for the cursor.
   */
  read(project: number, after: number, limit: number): Frame[] {
    const found =
      this.#old === this.#young ? [] : beyond(this.#old.frames.get(project), after, limit)
    return found.length < limit
      ? [...found, ...beyond(this.#young.frames.get(project), after, limit - found.length)]
      : found
  }
}
/**
 * Returns at most `limit` frames after a cursor. Frames are in cursor order, so a binary search
 * finds the first of these frames.
 */
function beyond(frames: readonly Frame[] | undefined, after: number, limit: number): Frame[] {
  if (!frames) return []
  let [low, high] = [0, frames.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((frames[middle] as Frame).cursor > after) high = middle
    else low = middle + 1
  }
  return frames.slice(low, low + limit)
}
