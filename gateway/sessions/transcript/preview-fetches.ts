/**
 * The fetches of whole previews for a follower. At most one fetch per row is in progress. If a gap
 * is detected during a fetch, the preview is fetched again afterwards, because the answer may be
 * older than the gap.
 */

interface Fetch {
  /** Whether the preview must be fetched again. */
  again: boolean
  done: Promise<void>
}

export class PreviewFetches {
  /** Fetches and applies the preview of a row. Must not reject. */
  readonly #fetch: (message_id: string) => Promise<void>
  /** The fetches in progress, by row. */
  readonly #running = new Map<string, Fetch>()
  #stopped = false

  constructor(fetch: (message_id: string) => Promise<void>) {
    this.#fetch = fetch
  }
  /** Fetches the preview of a row, again if a fetch is in progress. */
  start(message_id: string): void {
    const running = this.#running.get(message_id)
    if (running) {
      running.again = true
      return
    }
    const fetch: Fetch = { again: false, done: Promise.resolve() }
    this.#running.set(message_id, fetch)
    fetch.done = this.#run(message_id, fetch).finally(() => this.#running.delete(message_id))
  }
  /** Resolves when the fetches that are in progress now have ended. */
  async drain(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ done }) => done))
  }
  /** Prevents repeated fetches. */
  stop(): void {
    this.#stopped = true
  }
  async #run(message_id: string, fetch: Fetch): Promise<void> {
    do {
      fetch.again = false
      await this.#fetch(message_id)
    } while (fetch.again && !this.#stopped)
  }
}
