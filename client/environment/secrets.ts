/** Remembers the credentials known to the worker, and redacts them from the output of commands. */
import { OMISSION } from './process/output.ts'

/** Maximum number of remembered credentials. */
const MAX_SECRETS = 256
/** Minimum length of a credential. Redacting shorter strings would damage ordinary output. */
const MIN_LENGTH = 8
const REDACTED = '[redacted]'

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
  /**
   * Redacts every known credential, and its URL-encoded form; also the parts of it beside bytes that
   * were left out.
   */
  redact(text: string): string {
    const forms = new Set(
      [...this.#texts].flatMap((secret) => [secret, encodeURIComponent(secret)]),
    )
    let result = text
    for (const form of forms) result = result.replaceAll(form, REDACTED)
    const [notice] = OMISSION.exec(result) ?? []
    if (notice === undefined) return result
    let [head, tail] = halves(result, notice)
    for (const form of forms) {
      const lengths = Array.from({ length: form.length - MIN_LENGTH }, (_, at) => at + MIN_LENGTH)
      const begun = lengths.findLast((length) => head.endsWith(form.slice(0, length))) ?? 0
      const ended = lengths.findLast((length) => tail.startsWith(form.slice(-length))) ?? 0
      if (begun > 0) head = head.slice(0, -begun) + REDACTED
      if (ended > 0) tail = REDACTED + tail.slice(ended)
    }
    return head + notice + tail
  }
}
function halves(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return [text.slice(0, at), text.slice(at + separator.length)]
}
