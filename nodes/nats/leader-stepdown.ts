/**
 * Relief of a leader that refuses what it should take. The leader of a replicated stream alone knows which compare-and-sets are
 * under way, and refuses others of the same subject meanwhile. After a server was cut off (nats-server 2.15, "JetStream system
 * temporarily unavailable") nothing could be appended to three of four shards for a minute, until another server led: each append
 * was a conflict, although its subject's last sequence was the expected one. As if some were taken for under way that had failed;
 * whoever leads next knows nothing of them, so the leader is asked to step down.
 */
import { Empty } from '@nats-io/transport-node'
import { QUESTION, type Nats } from './server/connect.ts'
import { sentence } from './failures.ts'

/** How often, and for how many milliseconds, a subject must have been refused without a pause of `PAUSE`; and milliseconds between two requests to one stream. */
const TIMES = 4
const LASTING = 2000
const PAUSE = 5000
const REST = 10_000

/** Told of every compare-and-set that was refused although the subject's last sequence was the expected one. */
export type StepDown = (stream: string, subject: string) => void

/** @param now elapsed milliseconds. */
export function createLeaderStepDown(
  nats: Pick<Nats, 'ask' | 'log' | 'space'>,
  now = () => performance.now(),
): StepDown {
  const refused = new Map<string, { since: number; last: number; times: number }>()
  const asked = new Map<string, number>()
  return (stream, subject) => {
    const at = now()
    for (const [key, { last }] of refused) if (at - last >= PAUSE) refused.delete(key)
    const known = refused.get(subject) ?? { since: at, last: at, times: 0 }
    refused.set(subject, known)
    known.last = at
    known.times++
    if (
      known.times < TIMES ||
      at - known.since < LASTING ||
      at - (asked.get(stream) ?? Number.NEGATIVE_INFINITY) < REST
    )
      return
    asked.set(stream, at)
    refused.clear()
    nats.log.warn(
      { stream, subject },
      'the leader refuses what follows the newest message; it is asked to step down',
    )
    nats
      .ask(`${nats.space.api}.STREAM.LEADER.STEPDOWN.${stream}`, Empty, undefined, QUESTION)
      .catch((error: unknown) =>
        nats.log.warn({ stream, reason: sentence(error) }, 'the leader did not step down'),
      )
  }
}
