/**
 * The final statuses of turns. They are in a separate file, so that a browser that folds a
 * transcript need not load the schemas of sessions.
 */

/** The statuses in which a turn has ended. A turn never leaves them. */
export const settledTurns: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
