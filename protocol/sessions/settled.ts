/**
 * The final statuses of turns. They are in a separate file, so that a browser that folds a
 * transcript need not load the schemas of sessions.
 */

/** Statuses of a turn that never change. */
export const settledTurns: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])
