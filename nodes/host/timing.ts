/** How long a node may be silent, in milliseconds. `membership.ts` explains each limit. */

/** Interval between renewals of a node's record. */
export const RENEW = 400
/** Silence after which a node is dead if the NATS servers report no subscriber for it. */
export const GONE = 1250
/** Silence after which a node is dead in any case. */
export const LEASE = 2000
