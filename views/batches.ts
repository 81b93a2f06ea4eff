/** Divides the messages that a view receives into batches, and examines them. */
import type { Message } from './view.ts'

/** Maximum number of messages that are decoded together. */
const MAX_MESSAGES = 500
/**
 * Size in bytes at which no more messages are added to a batch. Decoding and applying half a
 * megabyte takes about 20 ms.
 */
const BATCH_BYTES = 524_288
/**
 * Approximate maximum number of entries in one part of a batch. Queries are answered between two
 * parts.
 */
const ENTRIES = 2000

/** Whether a message is still encoded. */
export const isEncoded = (data: Message['data']): data is Uint8Array | string =>
  data instanceof Uint8Array || typeof data === 'string'
/**
 * Whether a sequence is missing after the view's position or between two messages, usually because
 * an operator has just deleted the beginning of the journal.
 */
export const hasGap = (messages: readonly Message[], position: number): boolean =>
  messages.some(({ sequence }, i) => sequence > (messages[i - 1]?.sequence ?? position) + 1)

/** Splits messages into slices that are decoded together. */
export function slicesOf(messages: readonly Message[]): Message[][] {
  const slices: Message[][] = []
  let bytes = BATCH_BYTES
  for (const message of messages) {
    if (bytes >= BATCH_BYTES || (slices.at(-1)?.length ?? 0) >= MAX_MESSAGES)
      bytes = slices.push([]) && 0
    slices.at(-1)?.push(message)
    bytes += isEncoded(message.data) ? message.data.length : 0
  }
  return slices
}
/**
 * Splits messages into parts. A part ends once it has at least `ENTRIES` entries.
 */
export function partsOf(messages: readonly Message[]): Message[][] {
  const parts: Message[][] = []
  let room = 0
  for (const message of messages) {
    if (room <= 0) room = parts.push([]) && ENTRIES
    parts.at(-1)?.push(message)
    room -=
      isEncoded(message.data) || !Array.isArray(message.data.entries)
        ? 1
        : message.data.entries.length
  }
  return parts
}
