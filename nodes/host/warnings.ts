/**
 * Logs the warnings of actors. A recurring warning is logged at most once a minute while its topic
 * is remembered. The log line contains the number of repeats suppressed since the previous line.
 */
import type { Warning } from '../../actors/actor.ts'
import type { HostDeps } from './deps.ts'

/** Milliseconds between two log lines about the same topic. */
const WARNING_INTERVAL_MS = 60_000
/** Maximum number of remembered topics. */
const MAX_TOPICS = 1000

export class Warnings {
  readonly #deps: Pick<HostDeps, 'clock' | 'log'>
  /**
   * Per topic (`about`): the time of its last log line (`Clock.elapsed`), and the number of repeats
   * suppressed since then.
   */
  readonly #said = new Map<string, { at: number; unsaid: number }>()

  constructor(deps: Pick<HostDeps, 'clock' | 'log'>) {
    this.#deps = deps
  }
  say({ about, event, message, fields }: Warning): void {
    const now = this.#deps.clock.elapsed()
    const known = this.#said.get(about)
    if (known && now - known.at < WARNING_INTERVAL_MS) {
      known.unsaid++
      return
    }
    this.#said.delete(about)
    this.#said.set(about, { at: now, unsaid: 0 })
    const [oldest] = this.#said.keys()
    if (this.#said.size > MAX_TOPICS && oldest !== undefined) this.#said.delete(oldest)
    this.#deps.log.warn(
      { event, ...fields, ...(known && known.unsaid > 0 && { unsaid: known.unsaid }) },
      message,
    )
  }
}
