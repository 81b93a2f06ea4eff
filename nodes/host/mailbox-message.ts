/**
 * A message in a shard's mailbox: a command, a query (`ask`), or a task to run while no append is
 * in flight.
 */
import type { Address, Command } from '../../protocol/entry.ts'
import { notOwner, type ShardAnswer } from './deps.ts'

export type MailboxMessage =
  | {
      readonly type: 'command'
      readonly command: Command
      readonly answer: (answer: ShardAnswer) => void
    }
  | {
      readonly type: 'ask'
      readonly to: Address
      readonly name: string
      readonly input: unknown
      readonly answer: (answer: ShardAnswer) => void
    }
  | { readonly type: 'task'; readonly run: () => void; readonly fail: () => void }

/** Rejects a message: answers `not_owner`, or calls `fail` if it is a task. */
export const reject = (mailboxMessage: MailboxMessage): void =>
  mailboxMessage.type === 'task' ? mailboxMessage.fail() : mailboxMessage.answer(notOwner)
/** Returns the address of the actor that receives the message. */
export const actorOf = (mailboxMessage: Exclude<MailboxMessage, { type: 'task' }>): Address =>
  mailboxMessage.type === 'ask' ? mailboxMessage.to : mailboxMessage.command
