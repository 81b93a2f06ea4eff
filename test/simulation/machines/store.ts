/** The servers: journal, snapshots and registry. Each operation is atomic and immediate. */

import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import type { Appended, Stored } from '../../../nodes/host/ports.ts'
import type { Envelope } from '../../../protocol/entry.ts'

export interface Message extends Stored {
  readonly shard: number
  /** The simulated time at which the message was stored. */
  readonly at: number
}

/** The journal of one partition, with compare-and-set for each shard. */
export class JournalStore {
  readonly messages: Message[] = []
  readonly #last = new Map<number, Message>()
  readonly #decoded = new WeakMap<Message, Envelope>()

  append(
    shard: number,
    data: Uint8Array,
    expected: number,
    message_id: string,
    at: number,
  ): Appended {
    const last = this.#last.get(shard)
    if ((last?.sequence ?? 0) !== expected)
      return last?.message_id === message_id ? { sequence: last.sequence } : 'conflict'
    return this.force(shard, data, message_id, at)
  }
  /** Stores a message without checking the expected sequence. */
  force(shard: number, data: Uint8Array, message_id: string, at: number): { sequence: number } {
    const message: Message = { shard, data, message_id, sequence: this.messages.length + 1, at }
    this.messages.push(message)
    this.#last.set(shard, message)
    return { sequence: message.sequence }
  }
  last(shard: number): Message | undefined {
    return this.#last.get(shard)
  }
  envelope(message: Message): Envelope {
    const known = this.#decoded.get(message)
    if (known) return known
    const envelope = parseEnvelope(envelopeText(message.data))
    this.#decoded.set(message, envelope)
    return envelope
  }
}

interface Value {
  readonly data: Uint8Array
  readonly revision: number
}
/** Snapshots and checkpoints. The newest ones, or all of them, may be lost. */
export class StateStore {
  readonly #log: { readonly key: string; value: Value | undefined }[] = []
  #values = new Map<string, Value>()

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }
  put(key: string, data: Uint8Array, revision?: number): number | undefined {
    if (revision !== undefined && (this.#values.get(key)?.revision ?? 0) !== revision)
      return undefined
    this.#log.push({ key, value: { data, revision: this.#log.length + 1 } })
    this.#set(key, this.#log.at(-1)?.value)
    return this.#log.length
  }
  delete(key: string): void {
    this.#log.push({ key, value: undefined })
    this.#set(key, undefined)
  }
  /** Loses everything. Revisions continue to grow, as after a purge of the stream. */
  wipe(): void {
    for (const entry of this.#log) entry.value = undefined
    this.#values.clear()
  }
  /**
   * Loses the newest writes. The values that they replaced are either restored or lost too.
   * @param share the share of all writes that is lost.
   * @param older whether the replaced values are restored.
   */
  loseTail(share: number, older: boolean): void {
    const lost = this.#log.splice(Math.floor(this.#log.length * (1 - share)))
    if (older) {
      this.#values = new Map()
      for (const { key, value } of this.#log) this.#set(key, value)
    } else for (const { key } of lost) this.#values.delete(key)
  }
  #set(key: string, value: Value | undefined): void {
    if (value) this.#values.set(key, value)
    else this.#values.delete(key)
  }
}

/** A map with compare-and-set. */
export class RegistryStore {
  readonly #values = new Map<string, { readonly value: string; readonly revision: number }>()
  #revision = 0

  get(key: string): { readonly value: string; readonly revision: number } | undefined {
    return this.#values.get(key)
  }
  put(key: string, value: string, revision: number): number | undefined {
    if ((this.#values.get(key)?.revision ?? 0) !== revision) return undefined
    this.#values.set(key, { value, revision: ++this.#revision })
    return this.#revision
  }
  delete(key: string): void {
    this.#values.delete(key)
  }
  list(prefix: string): { key: string; value: string; revision: number }[] {
    return [...this.#values]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, entry]) => ({ key, ...entry }))
  }
  /** Restarts empty, as an in-memory bucket does when its servers restart. */
  forget(): void {
    this.#values.clear()
    this.#revision = 0
  }
}
