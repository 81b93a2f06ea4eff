/** Limits of multiplexed streams, which browsers load without the endpoint table. */

/** Maximum number of subscriptions of a stream. */
export const SUBSCRIPTIONS_PER_STREAM = 100
