/**
 * Limits of multiplexed streams, in a separate file so that browsers need not load the endpoint
 * table.
 */

/** Maximum number of subscriptions of a stream. */
export const SUBSCRIPTIONS_PER_STREAM = 100
