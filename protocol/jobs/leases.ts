/** The data that a queue reports about leases. */

/** A lease of a worker session, as the queue reports it. */
export interface GrantedLease {
  readonly job_id: string
  readonly lease_token: string
}
/**
 * The current state of a lease. `last_heartbeat_at`: absent until the current owner of the queue's
 * shard has received a heartbeat.
 */
export interface Renewal {
  readonly job_id: string
  readonly lease_expires_at: string
  readonly last_heartbeat_at?: string
}
