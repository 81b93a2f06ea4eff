/**
 * A cache of the newest envelopes that this process decided. A view in the same thread takes the
 * envelopes from the cache instead of parsing them again, and a view in another thread takes their
 * JSON, which it then need not decompress. An envelope that is not in the cache is decoded from its
 * bytes.
 *
 * Invariants:
 * R1. An envelope is stored in the cache before it is appended, under its message id, which no
 *     other envelope ever has. A journal message with that id therefore contains exactly this
 *     envelope, and an envelope that was never appended is never requested.
 * R2. Events, replies and origins never change after they are decided, so sharing them is the same
 *     as copying them.
 */
import type { Envelope } from '../../../protocol/entry.ts'
import { TransientMap } from '../../../protocol/rules/transient-map.ts'

/**
 * Maximum total length of the retained JSON in characters. A view that falls further behind parses
 * the envelopes itself.
 */
const MAX_CHARACTERS = 4 * 1024 * 1024

export class Recent<T extends Envelope | string> {
  readonly #form: (envelope: Envelope, json: string) => T
  readonly #kept = new TransientMap<string, { readonly value: T; readonly size: number }>()
  #size = 0

  /** @param form returns the form in which envelopes are stored in the cache. */
  constructor(form: (envelope: Envelope, json: string) => T) {
    this.#form = form
  }
  /** Stores an envelope. */
  keep(message_id: string, envelope: Envelope, json: string): void {
    this.#kept.set(message_id, { value: this.#form(envelope, json), size: json.length })
    this.#size += json.length
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= MAX_CHARACTERS) return
      this.take(oldest)
    }
  }
  /** Returns an envelope and removes it. */
  take(message_id: string): T | undefined {
    const found = this.#kept.get(message_id)
    if (!found) return undefined
    this.#kept.delete(message_id)
    this.#size -= found.size
    return found.value
  }
}
