/**
 * A short-term cache of answers to claims. A claim that is repeated with the same message id is
 * answered with the same jobs, even on a new connection of the session to this gateway.
 */

/** Milliseconds for which an answer is kept. */
const TTL_MS = 120_000
/** Maximum number of answers that are kept for a session. The oldest is dropped first. */
const MAX_ANSWERS = 8

/** The answers to claims that a gateway keeps, by session and message id. */
export interface Answers {
  /** Returns the text that answered a claim; undefined when no answer is kept. */
  get(session: string, message_id: string): string | undefined
  put(session: string, message_id: string, text: string): void
  /** Removes answers older than `TTL_MS`. */
  sweep(): void
}

/**
 * Creates an empty cache.
 * @param now returns the current time in Unix milliseconds.
 */
export function createAnswers(now: () => number): Answers {
  const sessions = new Map<string, Map<string, { readonly at: number; readonly text: string }>>()
  return {
    get(session, message_id) {
      const known = sessions.get(session)?.get(message_id)
      return known && now() - known.at < TTL_MS ? known.text : undefined
    },
    put(session, message_id, text) {
      const known = sessions.get(session) ?? new Map()
      known.delete(message_id)
      known.set(message_id, { at: now(), text })
      const [oldest] = known.keys()
      if (known.size > MAX_ANSWERS && oldest !== undefined) known.delete(oldest)
      sessions.set(session, known)
    },
    sweep() {
      for (const [session, known] of sessions) {
        for (const [id, { at }] of known) if (now() - at >= TTL_MS) known.delete(id)
        if (known.size === 0) sessions.delete(session)
      }
    },
  }
}
