/** Warnings of actors in the log: what goes wrong with every event is said once a minute, with how often it went wrong meanwhile. */
import type { Warning } from '../../actors/actor.ts'
import type { HostDeps } from './deps.ts'

/** Milliseconds between two lines about the same, and things that are told apart. */
const QUIET = 60_000
const MAX_WARNINGS = 1000

export class Warnings {
  readonly #deps: Pick<HostDeps, 'clock' | 'log'>
  /** By what it is about: when it was said last, by `elapsed`, and how often it was not. */
  readonly #said = new Map<string, { at: number; unsaid: number }>()

  constructor(deps: Pick<HostDeps, 'clock' | 'log'>) {
    this.#deps = deps
  }
  say({ about, message, fields }: Warning): void {
    const now = this.#deps.clock.elapsed()
    const known = this.#said.get(about)
    if (known && now - known.at < QUIET) {
      known.unsaid++
      return
    }
    this.#said.delete(about)
    this.#said.set(about, { at: now, unsaid: 0 })
    const [oldest] = this.#said.keys()
    if (this.#said.size > MAX_WARNINGS && oldest !== undefined) this.#said.delete(oldest)
    this.#deps.log.warn(
      { ...fields, ...(known && known.unsaid > 0 && { unsaid: known.unsaid }) },
      message,
    )
  }
}
