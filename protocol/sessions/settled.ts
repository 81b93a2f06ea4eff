/** Which turns have ended. Apart from the schemas of sessions, so that a browser that folds a transcript needs none of them. */

/** Turn statuses that never change again. */
export const settledTurns: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
