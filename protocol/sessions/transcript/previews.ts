/**
 * Previews: model output that followers of a session receive before it is committed. Previews are
 * broadcast, never stored, and have no cursor. The publisher of a generation is one process: the
 * gateway of the worker, or the executor. It numbers the chunks, so that a follower can detect a
 * gap. On request, it returns the whole output so far.
 *
 * Invariants:
 * P1. A preview belongs to a streaming row without stored content. `base` is the revision at which
 *     the publisher read the row. A later `message.upsert` of the row makes the preview obsolete.
 * P2. If a row has two publishers, the publisher with the larger `base` takes precedence. If their
 *     `base` values are equal, the larger `born` decides.
 * P3. The chunks of a publisher are numbered from 1. The content after n chunks is the result of
 *     appending them in order with `appendDelta`.
 */
import type { JsonObject } from '../../common.ts'
import type { Block } from '../turns/blocks.ts'

/**
 * The row of a preview, and its publisher. `born`: time at which the publisher started to publish
 * the row, in Unix milliseconds.
 */
export interface PreviewOf {
  readonly session_id: string
  readonly turn_id: string
  readonly message_id: string
  readonly base: number
  readonly born: number
}
/** One chunk of output. `n` is its number, and `at` its time in Unix milliseconds. */
export interface Preview extends PreviewOf {
  readonly n: number
  /**
   * The delta as the worker sent it: `{text}`, `{type: 'thinking', thinking}`, or a shape that only
   * some clients understand.
   */
  readonly delta: JsonObject
  readonly job_id: string
  /** Id of the run whose step requested the generation. */
  readonly run_id?: string | undefined
  readonly at: number
  readonly worker_id?: string | undefined
  readonly model?: string | undefined
  /** The number that the worker assigned to the chunk. */
  readonly sequence?: number | undefined
}
/** The whole output so far, after `n` chunks. */
export interface Previewed extends PreviewOf {
  readonly n: number
  readonly content: readonly Block[]
}

/**
 * Compares two publishers of a row by precedence. Returns a positive number if `a` takes
 * precedence, zero if they are the same, and otherwise a negative number.
 */
export const rank = (a: PreviewOf, b: PreviewOf): number => a.base - b.base || a.born - b.born

/**
 * The content of a message after a chunk was appended. The chunk extends the last block if both
 * have the same type, and otherwise opens a new block.
 */
export interface Appended {
  readonly content: readonly Block[]
  readonly index: number
  readonly opened: boolean
  readonly added: { readonly text: string } | { readonly thinking: string }
}
/**
 * Appends a chunk to the content of a message. Returns undefined if the chunk adds nothing that a
 * transcript shows.
 */
export function appendDelta(
  content: readonly Block[],
  { text, thinking }: JsonObject,
): Appended | undefined {
  const added =
    typeof thinking === 'string' ? { thinking } : typeof text === 'string' ? { text } : undefined
  if (!added || (added.text ?? added.thinking) === '') return undefined
  const index = Math.max(0, content.length - 1)
  const last = content[index]
  if (added.thinking !== undefined) {
    if (last?.type === 'thinking') {
      const block: Block = { ...last, thinking: last.thinking + added.thinking }
      return { content: content.with(index, block), index, opened: false, added }
    }
    const block: Block = { type: 'thinking', thinking: added.thinking }
    return { content: [...content, block], index: content.length, opened: true, added }
  }
  if (last?.type === 'text') {
    const block: Block = { ...last, text: last.text + added.text }
    return { content: content.with(index, block), index, opened: false, added }
  }
  const block: Block = { type: 'text', text: added.text }
  return { content: [...content, block], index: content.length, opened: true, added }
}

/**
 * The reply to the owner query `generation`: the row that a job writes, and the revision of the
 * session at which the row was read.
 */
export interface Generating {
  readonly turn_id: string
  readonly message_id: string
  readonly run_id?: string
  readonly revision: number
}
