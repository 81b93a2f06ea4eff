/**
 * Items on their way to many clients: joined into pieces, made once for all of them, because each write is a call to the system.
 * A piece stays small beside what a client may leave unread, so that a slow one is noticed between two.
 */
import { WHOLE } from '../http/respond.ts'

/** Something to show: its cursor and its bytes. */
export interface Item {
  readonly cursor: number
  readonly frame: string
}
/** Items that are written together. */
export interface Chunk {
  readonly items: readonly Item[]
  /** Cursors of the first and the last of them. */
  readonly first: number
  readonly last: number
  readonly content: string | Uint8Array
}
/** Characters of a piece after which the next one begins: with most last items it is still written at once. */
const SIZE = WHOLE - 1000

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

/** Join items. @param encoded into bytes, which pays when many clients get them. */
export function chunkFrames(items: readonly Item[], encoded: boolean): Chunk[] {
  const pieces: Chunk[] = []
  let from = 0
  let size = 0
  for (const [index, { frame }] of items.entries()) {
    size += frame.length
    if (size < SIZE && index < items.length - 1) continue
    pieces.push(chunkOf(items.slice(from, index + 1), encoded))
    from = index + 1
    size = 0
  }
  return pieces
}

/** What of a piece lies behind a cursor. */
export const chunkAfter = ({ items }: Chunk, after: number): Chunk =>
  chunkOf(
    items.filter(({ cursor }) => cursor > after),
    false,
  )
