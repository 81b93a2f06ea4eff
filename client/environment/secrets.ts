/** The credentials that the worker has seen, which are removed from the output of commands. */

/** Number of credentials that are remembered. */
const MAX_SECRETS = 256
/** Shorter texts are no secrets; replacing them would damage ordinary output. */
const MIN_LENGTH = 8

export class Secrets {
  /** In the order of their use. */
  readonly #texts = new Set<string>()
  add(text: string): void {
    if (text.length < MIN_LENGTH) return
    this.#texts.delete(text)
    this.#texts.add(text)
    const [oldest] = this.#texts
    if (oldest !== undefined && this.#texts.size > MAX_SECRETS) this.#texts.delete(oldest)
  }
  /** Replaces every known credential, also as a part of a URL or of Basic authentication. */
  redact(text: string): string {
    let result = text
    for (const secret of this.#texts)
      for (const form of new Set([secret, encodeURIComponent(secret)]))
        result = result.replaceAll(form, '[redacted]')
    return result
  }
}
