/**
 * A short-term cache of answers to claims. A claim that is repeated with the same message id is
 * answered with the same jobs, even on a new connection of the session to this gateway. The latest
 * `LATEST` answers of a session are kept for `WINDOW` milliseconds.
 */
const WINDOW = 120_000
const LATEST = 8

/** The cache of a gateway. */
export interface Answers {
  /** Returns the text that answered a claim within the window; undefined when there is none. */
  get(session: string, message_id: string): string | undefined
  put(session: string, message_id: string, text: string): void
  /** Removes answers older than the window. */
  sweep(): void
}

/**
 * Creates an empty cache.
 * @param now returns the current time in Unix milliseconds.
 */
export function answers(now: () => number): Answers {
  const sessions = new Map<string, Map<string, { readonly at: number; readonly text: string }>>()
  return {
    get(session, message_id) {
      const known = sessions.get(session)?.get(message_id)
      return known && now() - known.at < WINDOW ? known.text : undefined
    },
    put(session, message_id, text) {
      const known = sessions.get(session) ?? new Map()
      known.delete(message_id)
      known.set(message_id, { at: now(), text })
      const [oldest] = known.keys()
      if (known.size > LATEST && oldest !== undefined) known.delete(oldest)
      sessions.set(session, known)
    },
    sweep() {
      for (const [session, known] of sessions) {
        for (const [id, { at }] of known) if (now() - at >= WINDOW) known.delete(id)
        if (known.size === 0) sessions.delete(session)
      }
    },
  }
}
