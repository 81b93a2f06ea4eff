/**
 * Chooses worker sessions for the jobs of an offer. The candidates for an offer are all sessions
 * with a matching interest, regardless of the subscription that received the offer.
 *
 * Invariants:
 * H1. Of the sessions for which a job may be taken, the least recently served one is chosen.
 * H2. The cost of a choice does not depend on the number of sessions without a matching interest.
 */
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { offerCapability } from '../../../protocol/subjects.ts'
import { type Listened, matchesClaim, type Session, takeableJobs } from '../session.ts'
import { keyOf } from './eligible.ts'

/** The sessions of one project by interest, and a counter of choices. */
export interface Candidates {
  /** The interests of the sessions, by `keyOf`. */
  readonly interests: Map<string, Listened>
  /**
   * Total number of choices so far, across all sessions. A chosen session stores the new number in
   * its own `served`, so the session with the lowest number is the least recently served.
   */
  served: number
}
/** The jobs of one queue and capability. */
export interface JobGroup {
  readonly queue: string
  /** The keys of the interests that match the jobs. */
  readonly keys: readonly string[]
}

/** Returns the group to which a job belongs. */
export function groupOfJob(queue: string, job: JobHeader): JobGroup {
  const capability = offerCapability(job)
  return { queue, keys: [{ queue, capability }, { queue }, { capability }, {}].map(keyOf) }
}

/** Returns the subscriptions that match the jobs of a group. */
export function matchingSubscriptions({ interests }: Candidates, { keys }: JobGroup): Listened[] {
  const found: Listened[] = []
  for (const key of keys) {
    const listened = interests.get(key)
    if (listened) found.push(listened)
  }
  return found
}

/**
 * Returns the earliest `Listened.since` of the interests that match a group and have claimants, or
 * Infinity if there are no such interests.
 */
export function openSince(candidates: Candidates, group: JobGroup): number {
  let first = Number.POSITIVE_INFINITY
  for (const { claimants, since } of matchingSubscriptions(candidates, group))
    if (claimants.size > 0 && since < first) first = since
  return first
}

/** Returns whether a job of a group may be taken for at least one session. */
export function hasRoom(
  candidates: Candidates,
  group: JobGroup,
  job: JobHeader,
  now: number,
): boolean {
  for (const { claimants } of matchingSubscriptions(candidates, group))
    for (const session of claimants)
      if (takeableJobs(session, now) > 0 && matchesClaim(session, job, group.queue)) return true
  return false
}

/**
 * Returns the least recently served of the sessions for which a job may be taken, and marks it as
 * the most recently served. Returns undefined if there is no such session.
 */
export function choose(
  candidates: Candidates,
  group: JobGroup,
  job: JobHeader,
  now: number,
): Session | undefined {
  let first: Session | undefined
  for (const { claimants } of matchingSubscriptions(candidates, group)) {
    for (const session of claimants) {
      if (first && session.served >= first.served) break
      if (takeableJobs(session, now) <= 0 || !matchesClaim(session, job, group.queue)) continue
      first = session
      break
    }
  }
  if (!first) return undefined
  first.served = ++candidates.served
  for (const { claimants } of first.listened)
    if (claimants.size > 1 && claimants.delete(first)) claimants.add(first)
  return first
}
