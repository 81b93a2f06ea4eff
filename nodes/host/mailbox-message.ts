/**
 * A message in a shard's mailbox: a command, a query (`ask`), or a task to run while no append is
 * in flight.
 */
import type { Address, Command } from '../../protocol/entry.ts'
import type { TransientMap } from '../../protocol/rules/transient-map.ts'
import { notOwner, type ShardAnswer } from './deps.ts'
import { actorKey } from './memory/actor-instance.ts'

/** A callback that receives the answer to a command or a query. */
export type Answered = (answer: ShardAnswer) => void
export type MailboxMessage = CommandMessage | AskMessage | TaskMessage
export interface AskMessage {
  readonly type: 'ask'
  readonly to: Address
  /** The key of the actor that receives the message (`actorKey`). */
  readonly key: string
  readonly name: string
  readonly input: unknown
  readonly answer: Answered
}
interface TaskMessage {
  readonly type: 'task'
  readonly run: () => void
  readonly fail: () => void
}

/** The commands of a shard that are not answered yet, by their ids. */
export type OpenCommands = TransientMap<string, CommandMessage>

/** A command in the mailbox, with the receivers of its answer. */
export class CommandMessage {
  readonly type = 'command'
  readonly command: Command
  /** The key of the actor that receives the message (`actorKey`). */
  readonly key: string
  readonly #open: OpenCommands
  #answered: Answered

  constructor(command: Command, open: OpenCommands, answered: Answered) {
    this.command = command
    this.key = actorKey(command)
    this.#open = open
    this.#answered = answered
    if (!open.has(command.command_id)) open.set(command.command_id, this)
  }
  /** Whether a command repeats this one, so that one answer is right for both. */
  isRepeatedBy({ project, kind, id, command_id, fingerprint }: Command): boolean {
    const { command } = this
    return (
      command.id === id &&
      command.project === project &&
      command.kind === kind &&
      command.command_id === command_id &&
      command.fingerprint === fingerprint
    )
  }
  /** Adds a receiver of the answer. */
  join(answered: Answered): void {
    const earlier = this.#answered
    this.#answered = (answer) => {
      earlier(answer)
      answered(answer)
    }
  }
  answer(answer: ShardAnswer): void {
    const { command_id } = this.command
    if (this.#open.get(command_id) === this) this.#open.delete(command_id)
    this.#answered(answer)
  }
}

/** Rejects a message: answers `not_owner`, or calls `fail` if it is a task. */
export const rejectMessage = (mailboxMessage: MailboxMessage): void =>
  mailboxMessage.type === 'task' ? mailboxMessage.fail() : mailboxMessage.answer(notOwner)
/** Returns the address of the actor that receives the message. */
export const actorOf = (mailboxMessage: CommandMessage | AskMessage): Address =>
  mailboxMessage.type === 'ask' ? mailboxMessage.to : mailboxMessage.command
