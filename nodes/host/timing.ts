/**
 * Times that nodes use to determine whether other nodes are alive, in milliseconds.
 * `cluster/membership.ts` explains how they are used.
 */

/** Interval between renewals of a node's record. */
export const RENEWAL_INTERVAL_MS = 400
/** Silence after which a node is dead if the NATS servers report no subscriber for it. */
export const DEAD_WITHOUT_SUBSCRIBER_MS = 1250
/** Silence after which a node is dead in any case. */
export const LEASE_DURATION_MS = 2000
/** Time to wait for the answer to a presence probe. */
export const PROBE_TIMEOUT_MS = 300
