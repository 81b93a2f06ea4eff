/**
 * What waits for a shard's loop. Messages are decided in the order in which they came, but one whose actor is still being read
 * is passed by others: it would hold up all of them, for as long as a storage that is busy electing a leader takes.
 *
 * Invariants:
 * M1. Messages to one actor keep their order.
 * M2. A task runs when everything that came before it was taken.
 */
import { cellKey } from './memory/actor-instance.ts'
import type { ActorCache } from './memory/actor-cache.ts'
import { actorOf, reject, type MailboxMessage } from './mailbox-message.ts'

/** Messages of one batch, and how many are looked at to find them. */
const MAX_BATCH = 256
const LOOK = 1024

export class Mailbox {
  readonly #cells: ActorCache
  #letters: MailboxMessage[] = []
  /** Whether what was ready last is what came first. */
  #first = true

  constructor(cells: ActorCache) {
    this.#cells = cells
  }
  get length(): number {
    return this.#letters.length
  }
  /** @param busy others are being committed: what the letter needs is read meanwhile. */
  post(letter: MailboxMessage, busy: boolean): void {
    this.#letters.push(letter)
    if (busy && letter.type !== 'task') this.#cells.ready(letter)
  }
  /** What can be decided now, in order; what the others need is being read. Throws when that is impossible. */
  ready(): readonly MailboxMessage[] {
    this.#cells.check()
    const some: MailboxMessage[] = []
    const passed = new Set<string>()
    for (let i = 0; i < this.#letters.length && i < LOOK && some.length < MAX_BATCH; i++) {
      const letter = this.#letters[i] as MailboxMessage
      if (letter.type === 'task') {
        // One that has to wait for what was passed is passed as well.
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
  /** Take the first of those that were ready. */
  take(ready: readonly MailboxMessage[], count: number): void {
    if (this.#first)
      this.#letters = count === this.#letters.length ? [] : this.#letters.slice(count)
    else {
      const taken = new Set(ready.slice(0, count))
      this.#letters = this.#letters.filter((letter) => !taken.has(letter))
    }
  }
  /** Turn everything away. */
  close(): void {
    for (const letter of this.#letters.splice(0)) reject(letter)
  }
}
