/**
 * The queue of messages for a shard's loop. Messages are decided in arrival order, except that a
 * message whose actor is still being read is overtaken by messages to other actors. Otherwise one
 * slow read, for example during a leader election of the storage, would delay all of them.
 *
 * Invariants:
 * M1. Messages to one actor keep their order.
 * M2. A task in the mailbox runs only after every message that arrived before it.
 */

import { type MailboxMessage, rejectMessage } from './mailbox-message.ts'
import type { ActorCache } from './memory/actor-cache.ts'
import { isEffectId } from './memory/actor-instance.ts'

/** Maximum number of messages in one batch. */
const MAX_BATCH = 256
/** Maximum number of messages that are examined to fill a batch. */
const MAX_EXAMINED = 1024

export class Mailbox {
  readonly #instances: ActorCache
  #messages: MailboxMessage[] = []
  /**
   * Whether the last call to `ready` skipped no message, so that it returned the head of the queue.
   */
  #first = true

  constructor(instances: ActorCache) {
    this.#instances = instances
  }
  get length(): number {
    return this.#messages.length
  }
  /**
   * Adds a message.
   * @param busy whether the shard's loop is running. If so, the message's actor is read into memory
   *   while the message waits.
   */
  post(mailboxMessage: MailboxMessage, busy: boolean): void {
    this.#messages.push(mailboxMessage)
    if (busy && mailboxMessage.type !== 'task') this.#instances.ready(mailboxMessage)
  }
  /**
   * Returns the messages that can be decided now, in order, and starts reading the actors of the
   * other messages.
   * @throws Unreadable when the actor of a message cannot be read.
   * @throws ForeignSnapshot when another release wrote the actor's snapshot in an unknown format.
   */
  ready(): readonly MailboxMessage[] {
    this.#instances.check()
    const some: MailboxMessage[] = []
    /** The actors whose messages have to wait. */
    let passed: Set<string> | undefined
    for (let i = 0; i < this.#messages.length && i < MAX_EXAMINED && some.length < MAX_BATCH; i++) {
      const mailboxMessage = this.#messages[i] as MailboxMessage
      if (mailboxMessage.type === 'task') {
        // A task must not overtake the messages before it.
        if (!passed) some.push(mailboxMessage)
        continue
      }
      if (!passed?.has(mailboxMessage.key) && this.#instances.ready(mailboxMessage))
        some.push(mailboxMessage)
      else {
        passed ??= new Set()
        passed.add(mailboxMessage.key)
      }
    }
    this.#first = !passed
    return some
  }
  /** Removes the first `count` of the messages that `ready` returned. */
  take(ready: readonly MailboxMessage[], count: number): void {
    if (this.#first)
      this.#messages = count === this.#messages.length ? [] : this.#messages.slice(count)
    else {
      const taken = new Set(ready.slice(0, count))
      this.#messages = this.#messages.filter((mailboxMessage) => !taken.has(mailboxMessage))
    }
  }
  /** Rejects the commands of effects, which their senders repeat. */
  rejectEffects(): void {
    this.#messages = this.#messages.filter((mailboxMessage) => {
      const isEffect =
        mailboxMessage.type === 'command' && isEffectId(mailboxMessage.command.command_id)
      if (isEffect) rejectMessage(mailboxMessage)
      return !isEffect
    })
  }
  /** Rejects all messages. */
  close(): void {
    for (const mailboxMessage of this.#messages.splice(0)) rejectMessage(mailboxMessage)
  }
}
