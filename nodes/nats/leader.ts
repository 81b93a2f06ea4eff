/**
 * Decides whether to trust a server that claims to lead a stream. A server that stalled may not
 * have noticed yet that it was replaced.
 */
import type { StreamInfo } from '@nats-io/jetstream'

/**
 * Milliseconds since the last contact within which a follower counts as near its leader. Followers
 * contact their leader every second and elect another one 4 s after the last contact at the
 * earliest (nats-server 2.15, `minElectionTimeoutDefault` in server/raft.go).
 */
const MAX_CONTACT_AGE_MS = 2500
/**
 * Milliseconds within which a leader must answer. An old leader that resumes after an election
 * first processes the messages that the other servers sent before the election. Until it has
 * processed them, it considers these servers near and itself the leader. However, it answers
 * requests from before the election late, and requests from after the election later than the new
 * leader does.
 */
const MAX_REPLY_MS = 1000
/**
 * Whether the server was still the leader when it answered. This is true if it answered in time and
 * was in recent contact with a majority, because the other servers cannot have elected a new leader
 * yet. A partitioned server still acts as the leader, but lacks newer messages.
 * @param took milliseconds from the request to the answer.
 */
export function wasLeader(cluster: StreamInfo['cluster'], took: number): boolean {
  const replicas = cluster?.replicas ?? []
  if (replicas.length > 0 && took > MAX_REPLY_MS) return false
  const near = replicas.filter(
    ({ active, offline }) => !offline && active < MAX_CONTACT_AGE_MS * 1e6,
  ).length
  return near + 1 > (replicas.length + 1) / 2
}

/**
 * Milliseconds since the last answer of the last known leader within which a server that reports an
 * earlier election is not trusted.
 */
const LEADER_TTL_MS = 2000
/**
 * Remembers the last leader of each stream. A predecessor that has just resumed may answer a
 * request sooner than its successor, and is recognized by its earlier election time. A leader
 * counts only for `LEADER_TTL_MS` after its last answer, because server clocks differ: a successor
 * with a slow clock may report an earlier time than its predecessor. Such a successor must be
 * trusted once the predecessor has not answered for a while.
 * @param now returns monotonic time in milliseconds.
 * @returns a function that checks whether the answering server is the last known leader or its
 *   successor.
 */
export function createSuccession(
  now: () => number,
): (stream: number, cluster: StreamInfo['cluster']) => boolean {
  const known = new Map<number, { since: number; heard: number }>()
  return (stream, cluster) => {
    const since = Date.parse(cluster?.leader_since ?? '')
    if (Number.isNaN(since)) return true
    const last = known.get(stream)
    if (last && since < last.since && now() - last.heard < LEADER_TTL_MS) return false
    known.set(stream, { since, heard: now() })
    return true
  }
}
