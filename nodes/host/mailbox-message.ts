/** What waits in a shard's mailbox: a command, a read, or something to run when no append is in flight. */
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

/** Tell whoever waits that the shard is not served here any more. */
export const reject = (letter: MailboxMessage): void =>
  letter.type === 'task' ? letter.fail() : letter.answer(notOwner)
/** The actor that a letter is for. */
export const actorOf = (letter: Exclude<MailboxMessage, { type: 'task' }>): Address =>
  letter.type === 'ask' ? letter.to : letter.command
