/**
 * A cache of the newest envelopes that this process decided. Views in the same process take the
 * envelopes from the cache instead of parsing them again. An envelope that is not in the cache is
 * parsed from its bytes.
 *
 * Invariants:
 * R1. An envelope is stored in the cache before it is appended, under its message id, which no
 *     other envelope ever has. A journal message with that id therefore contains exactly this
 *     envelope, and an envelope that was never appended is never requested.
 * R2. Events, replies and origins never change after they are decided, so sharing them is the same
 *     as copying them.
 */
import type { Envelope } from '../../../protocol/entry.ts'

/**
 * Maximum total length of the retained JSON in characters. A view that falls further behind parses
 * the envelopes itself.
 */
const KEPT = 4 * 1024 * 1024

export class Recent {
  readonly #kept = new Map<string, { readonly envelope: Envelope; readonly size: number }>()
  #size = 0

  /**
   * Stores an envelope.
   * @param size characters of its JSON.
   */
  keep(message_id: string, envelope: Envelope, size: number): void {
    this.#kept.set(message_id, { envelope, size })
    this.#size += size
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= KEPT) return
      this.take(oldest)
    }
  }
  /** Returns an envelope and removes it. */
  take(message_id: string): Envelope | undefined {
    const found = this.#kept.get(message_id)
    if (!found) return undefined
    this.#kept.delete(message_id)
    this.#size -= found.size
    return found.envelope
  }
}
