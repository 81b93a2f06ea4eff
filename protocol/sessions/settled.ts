/**
 * Final turn statuses. Separate from the session schemas, so that a browser that folds a transcript
 * does not load them.
 */

/** Turn statuses that never change again. */
export const settledTurns: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
