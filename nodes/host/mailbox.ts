/**
 * The queue of messages for a shard's loop. Messages are decided in arrival order. However, a
 * message whose actor is still being read is overtaken by messages to other actors; otherwise one
 * slow read, for example during a leader election of the storage, would delay all of them.
 *
 * Invariants:
 * M1. Messages to one actor keep their order.
 * M2. A task runs after every message that arrived before it was taken from the queue.
 */

import { actorOf, type MailboxMessage, reject } from './mailbox-message.ts'
import type { ActorCache } from './memory/actor-cache.ts'
import { cellKey } from './memory/actor-instance.ts'

/** Maximum number of messages in one batch, and of messages examined to fill it. */
const MAX_BATCH = 256
const LOOK = 1024

export class Mailbox {
  readonly #cells: ActorCache
  #letters: MailboxMessage[] = []
  /** Whether the messages that `ready` returned last are the head of the queue. */
  #first = true

  constructor(cells: ActorCache) {
    this.#cells = cells
  }
  get length(): number {
    return this.#letters.length
  }
  /**
   * Adds a message.
   * @param busy whether the shard's loop is running: the message's actor is then read in the
   * meantime.
   */
  post(letter: MailboxMessage, busy: boolean): void {
    this.#letters.push(letter)
    if (busy && letter.type !== 'task') this.#cells.ready(letter)
  }
  /**
   * Returns the messages that can be decided now, in order, and starts reading the actors of the
   * others. Throws when an actor cannot be read.
   */
  ready(): readonly MailboxMessage[] {
    this.#cells.check()
    const some: MailboxMessage[] = []
    const passed = new Set<string>()
    for (let i = 0; i < this.#letters.length && i < LOOK && some.length < MAX_BATCH; i++) {
      const letter = this.#letters[i] as MailboxMessage
      if (letter.type === 'task') {
        // A task must not overtake the messages before it.
        if (passed.size === 0) some.push(letter)
        continue
      }
      if ((passed.size > 0 && passed.has(cellKey(actorOf(letter)))) || !this.#cells.ready(letter))
        passed.add(cellKey(actorOf(letter)))
      else some.push(letter)
    }
    this.#first = passed.size === 0
    return some
  }
  /** Removes the first `count` of the messages that `ready` returned. */
  take(ready: readonly MailboxMessage[], count: number): void {
    if (this.#first)
      this.#letters = count === this.#letters.length ? [] : this.#letters.slice(count)
    else {
      const taken = new Set(ready.slice(0, count))
      this.#letters = this.#letters.filter((letter) => !taken.has(letter))
    }
  }
  /** Rejects all messages. */
  close(): void {
    for (const letter of this.#letters.splice(0)) reject(letter)
  }
}
