/**
 * Joins items into chunks, because each write is a system call. A chunk of live entries is built
 * once for all clients. It is small compared with the limit of unsent data per client, so that a
 * slow client is detected between two chunks. Chunks are written by `follow.ts`.
 */
import { MAX_WRITE_BYTES } from '../http/respond.ts'

/** An item of a sequence: its cursor, and the text of its frames. */
export interface Item {
  readonly cursor: number
  readonly frame: string
}
/** Items that are written together. */
export interface Chunk {
  readonly items: readonly Item[]
  /** Cursor of the first item. */
  readonly first: number
  /** Cursor of the last item. */
  readonly last: number
  readonly content: string | Uint8Array
}
/**
 * Number of characters from which a chunk is complete. The last item usually extends a chunk beyond
 * this number, which is therefore less than `MAX_WRITE_BYTES`, so that most chunks fit into one
 * write.
 */
const SIZE = MAX_WRITE_BYTES - 1000

const chunkOf = (items: readonly Item[], encoded: boolean): Chunk => {
  const text =
    items.length === 1 ? (items[0]?.frame ?? '') : items.map(({ frame }) => frame).join('')
  return {
    items,
    first: items[0]?.cursor ?? 0,
    last: items.at(-1)?.cursor ?? 0,
    content: encoded ? Buffer.from(text) : text,
  }
}

/**
 * Joins items into chunks.
 * @param encoded whether to encode the chunks as bytes, which is faster for several clients.
 */
export function chunkFrames(items: readonly Item[], encoded: boolean): Chunk[] {
  const chunks: Chunk[] = []
  let from = 0
  let size = 0
  for (const [index, { frame }] of items.entries()) {
    size += frame.length
    if (size < SIZE && index < items.length - 1) continue
    chunks.push(chunkOf(items.slice(from, index + 1), encoded))
    from = index + 1
    size = 0
  }
  return chunks
}

/** Returns the part of a chunk after the given cursor. */
export const chunkAfter = ({ items }: Chunk, after: number): Chunk =>
  chunkOf(
    items.filter(({ cursor }) => cursor > after),
    false,
  )
