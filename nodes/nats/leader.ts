/** Whether a server that says it leads a stream is to be believed: one that stood still does not know yet that it was replaced. */
import type { StreamInfo } from '@nats-io/jetstream'

/**
 * Milliseconds. Followers elect another leader 4 s at the earliest after they last heard of theirs (nats-server 2.15,
 * `minElectionTimeoutDefault` in server/raft.go), and are in touch every second.
 */
const IN_TOUCH = 2500
/**
 * Milliseconds within which a leader tells. One that stood still for longer than an election takes, and goes on, reads first
 * what the others had sent before: it takes them for near and itself for the leader. What it is asked after that election,
 * the new leader has answered long before; what it was asked earlier, it answers late.
 */
const PROMPT = 1000
/**
 * Whether the server that told this was the leader when it did: so many replicas were in touch with it that the others
 * cannot have elected another one yet. One that is cut off goes on believing that it leads, and knows of no newer messages.
 * @param took milliseconds from the question to the answer
 */
export function leads(cluster: StreamInfo['cluster'], took: number): boolean {
  const replicas = cluster?.replicas ?? []
  if (replicas.length > 0 && took > PROMPT) return false
  const near = replicas.filter(({ active, offline }) => !offline && active < IN_TOUCH * 1e6).length
  return near + 1 > (replicas.length + 1) / 2
}

/** Milliseconds for which the leader that was heard last stands against one that says it was elected before. */
const REMEMBERED = 2000
/**
 * Remembers who led each stream last. A predecessor that has just woken up may answer before its successor does; it says since
 * when it leads, and that tells it apart. Only for a moment: the clocks of servers differ, and a leader that was elected later
 * by a clock that is slow must be believed once nobody else has answered for a while.
 * @param now milliseconds that only grow.
 * @returns whether the one that answered now is the last one known, or its successor.
 */
export function createSuccession(
  now: () => number,
): (stream: number, cluster: StreamInfo['cluster']) => boolean {
  const known = new Map<number, { since: number; heard: number }>()
  return (stream, cluster) => {
    const since = Date.parse(cluster?.leader_since ?? '')
    if (Number.isNaN(since)) return true
    const last = known.get(stream)
    if (last && since < last.since && now() - last.heard < REMEMBERED) return false
    known.set(stream, { since, heard: now() })
    return true
  }
}
