/**
 * The newest envelopes of this process as they were decided, for its own views: what comes back from the journal need not
 * be parsed again. A cache: what is not here is read from the bytes.
 *
 * Invariants:
 * R1. An envelope is kept before it is appended, under its message id, which no other envelope ever has: whoever reads a
 *     message of that id from the journal has read this envelope, and what was never stored is never asked for.
 * R2. Nobody changes events, replies or origins after they were decided, so sharing them is the same as copying them.
 */
import type { Envelope } from '../../../protocol/entry.ts'

/** Characters of JSON kept at most: a view that falls behind reads the journal. */
const KEPT = 4 * 1024 * 1024

export class Recent {
  readonly #kept = new Map<string, { readonly envelope: Envelope; readonly size: number }>()
  #size = 0

  /** @param size characters of its JSON. */
  keep(message_id: string, envelope: Envelope, size: number): void {
    this.#kept.set(message_id, { envelope, size })
    this.#size += size
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= KEPT) return
      this.take(oldest)
    }
  }
  /** Give an envelope and forget it. */
  take(message_id: string): Envelope | undefined {
    const found = this.#kept.get(message_id)
    if (!found) return undefined
    this.#kept.delete(message_id)
    this.#size -= found.size
    return found.envelope
  }
}
