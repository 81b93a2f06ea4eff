/**
 * Reads a message in the calling thread: parses it and authenticates its sender. A hostile message
 * may need a lot of time and memory, so this must run in a thread with limits (`reader.ts`).
 */
import { createHash } from 'node:crypto'
import type { DNSResolver } from 'mailauth'
import type { JsonObject } from '../../protocol/common.ts'
import { authenticityOf, type Transaction } from './authenticity.ts'
import { authorOf, eventOf, messageIdOf, parseMessage } from './message.ts'
import { measured } from './raw-message.ts'

export interface Message {
  readonly raw: Uint8Array
  readonly transaction: Transaction
  /** Unix milliseconds at which the message was received. */
  readonly at: number
}
/**
 * A message that was read: its id, and the payload of its event without the agent. `error`
 * completes a sentence about the message.
 */
export type MessageRead =
  | { readonly message_id: string; readonly content: JsonObject }
  | { readonly error: string }

export async function readMessage(
  { raw, transaction, at }: Message & { readonly raw: Buffer },
  resolver: DNSResolver,
): Promise<MessageRead> {
  const size = measured(raw)
  if ('error' in size) return size
  const mail = await parseMessage(raw).catch(() => undefined)
  if (!mail) return { error: 'cannot be read' }
  const authenticity = await authenticityOf(
    { raw, header: size.header, author: authorOf(mail) },
    transaction,
    resolver,
  )
  const message_id =
    messageIdOf(mail) ?? `${createHash('sha256').update(raw).digest('hex')}@${transaction.mta}`
  return {
    message_id,
    content: eventOf(mail, message_id, { at, authenticity, sender: transaction.sender }),
  }
}
