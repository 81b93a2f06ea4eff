/**
 * Requests that the leader of a stream step down when it rejects valid writes. The leader of a
 * replicated stream rejects a compare-and-set while another one on the same subject is in progress.
 * Only the leader has this state. After one network partition, a leader behaved as if failed
 * appends were still in progress (nats-server 2.15, "JetStream system temporarily unavailable").
 * Three of four shards accepted no append for a minute, until another server became leader. Each
 * append was rejected as a conflict, although its subject's last sequence was the expected one.
 */
import { Empty } from '@nats-io/transport-node'
import { errorText } from './failures.ts'
import { type Nats, REQUEST_TIMEOUT_MS } from './server/connect.ts'

/** Minimum number of consecutive rejections on one subject before a step-down is requested. */
const MIN_REJECTIONS = 4
/**
 * Minimum number of milliseconds from the first to the last rejection on one subject before a
 * step-down is requested.
 */
const MIN_DURATION_MS = 2000
/**
 * Number of milliseconds without a rejection after which the rejections on a subject are forgotten.
 */
const MAX_GAP_MS = 5000
/** Minimum number of milliseconds between two step-down requests for one stream. */
const REQUEST_EVERY_MS = 10_000

/**
 * Reports a compare-and-set that was rejected although the subject's last sequence was the expected
 * one.
 */
export type StepDown = (stream: string, subject: string) => void

/**
 * Creates the function that counts rejections and requests step-downs.
 * @param now returns monotonic time in milliseconds.
 */
export function createLeaderStepDown(
  nats: Pick<Nats, 'ask' | 'log' | 'space'>,
  now = () => performance.now(),
): StepDown {
  const refused = new Map<string, { since: number; last: number; times: number }>()
  const asked = new Map<string, number>()
  return (stream, subject) => {
    const at = now()
    for (const [key, { last }] of refused) if (at - last >= MAX_GAP_MS) refused.delete(key)
    const known = refused.get(subject) ?? { since: at, last: at, times: 0 }
    refused.set(subject, known)
    known.last = at
    known.times++
    if (
      known.times < MIN_REJECTIONS ||
      at - known.since < MIN_DURATION_MS ||
      at - (asked.get(stream) ?? Number.NEGATIVE_INFINITY) < REQUEST_EVERY_MS
    )
      return
    asked.set(stream, at)
    refused.clear()
    nats.log.warn(
      { event: 'stream_stepdown_requested', stream, subject },
      'stream leader rejects valid appends; step-down requested',
    )
    nats
      .ask(
        `${nats.space.api}.STREAM.LEADER.STEPDOWN.${stream}`,
        Empty,
        undefined,
        REQUEST_TIMEOUT_MS,
      )
      .catch((error: unknown) =>
        nats.log.warn(
          { event: 'stream_stepdown_failed', stream, reason: errorText(error) },
          'stream leader step-down failed',
        ),
      )
  }
}
