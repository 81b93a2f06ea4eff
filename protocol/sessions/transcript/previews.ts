/**
 * What a model has said so far, on its way to whoever follows: sent around, never stored, no cursor. One process publishes a
 * generation: the gateway that holds the worker's socket, or the executor. It counts the pieces, so that a follower sees a
 * hole, and gives everything so far to whoever asks.
 *
 * Invariants:
 * P1. A preview belongs to a row that streams and has no stored content. `base` is the revision at which its publisher learned
 *     of the row: a row that was begun anew since (a later `message.upsert`) is not this preview's any more.
 * P2. Of two publishers of one row the one with the larger `base`, then `born`, counts.
 * P3. Pieces are numbered 1, 2, 3… within (base, born). The content after n pieces is the fold of them with `appendDelta`.
 */
import type { JsonObject } from '../../common.ts'
import type { Block } from '../turns/blocks.ts'

/** Whose words these are, and who says so. Times are Unix milliseconds. */
export interface PreviewOf {
  readonly session_id: string
  readonly turn_id: string
  readonly message_id: string
  readonly base: number
  readonly born: number
}
/** One piece. */
export interface Preview extends PreviewOf {
  readonly n: number
  /** As its worker sent it: `{text}`, `{type: 'thinking', thinking}`, or something that only some clients know. */
  readonly delta: JsonObject
  readonly job_id: string
  /** The run whose step asked for it. */
  readonly run_id?: string
  readonly at: number
  readonly worker_id?: string
  readonly model?: string
  /** The worker's own count. */
  readonly sequence?: number
}
/** Everything so far. */
export interface Previewed extends PreviewOf {
  readonly n: number
  readonly content: readonly Block[]
}

/** Whether one publisher of a row counts before another: positive, zero for the same one, negative. */
export const rank = (a: PreviewOf, b: PreviewOf): number => a.base - b.base || a.born - b.born

/** What a piece adds to a content: to its last block when that is of its kind, else as a block of its own. */
export interface Appended {
  readonly content: readonly Block[]
  readonly index: number
  readonly opened: boolean
  readonly added: { readonly text: string } | { readonly thinking: string }
}
/** Append a piece; undefined when it adds nothing that a transcript shows. */
export function appendDelta(
  content: readonly Block[],
  { text, thinking }: JsonObject,
): Appended | undefined {
  const added =
    typeof thinking === 'string' ? { thinking } : typeof text === 'string' ? { text } : undefined
  if (!added || (added.text ?? added.thinking) === '') return undefined
  const last = content.at(-1)
  const index = Math.max(0, content.length - 1)
  if (added.thinking !== undefined) {
    if (last?.type === 'thinking')
      return {
        content: [
          ...content.slice(0, index),
          { ...last, thinking: last.thinking + added.thinking },
        ],
        index,
        opened: false,
        added,
      }
    return {
      content: [...content, { type: 'thinking', thinking: added.thinking }],
      index: content.length,
      opened: true,
      added,
    }
  }
  if (last?.type === 'text')
    return {
      content: [...content.slice(0, index), { ...last, text: last.text + added.text }],
      index,
      opened: false,
      added,
    }
  return {
    content: [...content, { type: 'text', text: added.text }],
    index: content.length,
    opened: true,
    added,
  }
}

/** Answer to the read `generation`: the row that a job writes, as of a revision. */
export interface Generating {
  readonly turn_id: string
  readonly message_id: string
  readonly run_id?: string
  readonly revision: number
}
