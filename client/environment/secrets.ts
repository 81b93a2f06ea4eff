/** Remembers the credentials known to the worker, and redacts them from the output of commands. */

/** Maximum number of remembered credentials. */
const MAX_SECRETS = 256
/** Minimum length of a credential. Redacting shorter strings would damage ordinary output. */
const MIN_LENGTH = 8

export class Secrets {
  /** The credentials, ordered from least to most recently added. */
  readonly #texts = new Set<string>()
  add(text: string): void {
    if (text.length < MIN_LENGTH) return
    this.#texts.delete(text)
    this.#texts.add(text)
    const [oldest] = this.#texts
    if (oldest !== undefined && this.#texts.size > MAX_SECRETS) this.#texts.delete(oldest)
  }
  /** Redacts every known credential, and its URL-encoded form. */
  redact(text: string): string {
    let result = text
    for (const secret of this.#texts)
      for (const form of new Set([secret, encodeURIComponent(secret)]))
        result = result.replaceAll(form, '[redacted]')
    return result
  }
}
