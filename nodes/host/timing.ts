/** How long silence of a node may last, in milliseconds; `membership.ts` says what each is for. */

/** Between renewals of a node's record. */
export const RENEW = 400
/** Until a node is dead of which the servers know of no listener. */
export const GONE = 1250
/** Until a node is dead in any case. */
export const LEASE = 2000
