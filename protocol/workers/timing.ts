/** The timing of workers: heartbeats, leases and claims, and the constraints between them. */

/**
 * The timing of workers, in seconds. The constraints between the values are checked at startup.
 * - `cadence`: time between two heartbeats.
 * - `lease`: duration of a lease.
 * - `poll`: maximum duration of a claim.
 * - `stale`: time without a heartbeat after which a worker is considered stale.
 * - `takeover`: time without a heartbeat after which another process may register as the same
 *   instance.
 * - `register`: maximum time from the connection to the registration.
 */
export interface WorkerTiming {
  readonly cadence: number
  readonly lease: number
  readonly poll: number
  readonly stale: number
  readonly takeover: number
  readonly register: number
}

export const defaultTiming: WorkerTiming = {
  cadence: 20,
  lease: 60,
  poll: 20,
  stale: 90,
  takeover: 60,
  register: 30,
}

/**
 * Returns the constraints that a timing violates. The constraints are: lease ≥ 3 × cadence,
 * cadence ≤ 55, poll ≤ cadence, stale > 2 × cadence, takeover ≤ stale.
 */
export function checkTiming(t: WorkerTiming): string[] {
  const faults: string[] = []
  if (t.cadence > 55) faults.push('heartbeat cadence must be at most 55 s')
  if (t.lease < 3 * t.cadence) faults.push('lease must be at least three heartbeat cadences')
  if (t.poll > t.cadence) faults.push('claim poll must not be longer than the heartbeat cadence')
  if (t.stale <= 2 * t.cadence) faults.push('stale time must be more than two heartbeat cadences')
  if (t.takeover > t.stale) faults.push('takeover window must not be longer than the stale time')
  return faults
}
