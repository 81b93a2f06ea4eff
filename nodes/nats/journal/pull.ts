/**
 * Reading a stream in order: a named consumer in the server's memory and small fetches, so that a slow reader holds back
 * the server instead of filling its own memory.
 *
 * Invariants:
 * P1. Messages come in order and without holes: a delivery that is not the next one ends the reading with an error.
 * P2. It recovers from nothing: whoever reads decides where to begin again (journal.ts, follow.ts).
 * P3. The consumer is deleted at the end, and by the server after 30 s without its reader.
 */
import {
  AckPolicy,
  DeliverPolicy,
  type ConsumerMessages,
  type JsMsg,
  ReplayPolicy,
} from '@nats-io/jetstream'
import { nanos, nuid } from '@nats-io/transport-node'
import type { Nats } from '../server/connect.ts'

export interface Pulling {
  /** What has arrived; `undefined` when nothing came for `idle` milliseconds. Ends after `close`. */
  readonly messages: AsyncGenerator<JsMsg | undefined, void>
  close(): void
}
/** Messages of one fetch: at first, and at most. */
const FIRST = 8
const MAX_BATCH = 256
/** Bytes of one fetch, as far as the last one lets them be guessed: the server drops a connection that more than 64 MB wait for (its `max_pending`), which all readers share. */
const BYTES = 8 * 1_048_576

/**
 * Read from a sequence on.
 * @param subject only messages of this subject.
 * @param idle milliseconds, at least 1000.
 * @param first messages of the first fetch, for who knows that there are many.
 */
export async function pull(
  nats: Nats,
  stream: string,
  from: number,
  { subject, idle = 5000, first = FIRST }: { subject?: string; idle?: number; first?: number } = {},
): Promise<Pulling> {
  const name = `baton_${nuid.next()}`
  await nats.manager.consumers.add(stream, {
    name,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: Math.max(1, from),
    ack_policy: AckPolicy.None,
    replay_policy: ReplayPolicy.Instant,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: nanos(30_000),
    ...(subject !== undefined && { filter_subject: subject }),
  })
  let current: ConsumerMessages | undefined
  let closed = false

  async function* read(): AsyncGenerator<JsMsg | undefined, void> {
    let delivered = 0
    try {
      const consumer = await nats.streams.consumers.get(stream, name)
      for (let most = first; !closed; ) {
        current = await consumer.fetch({ max_messages: most, expires: idle })
        const before = delivered
        let largest = 1
        for await (const message of current) {
          if (closed) return
          if (message.info.deliverySequence !== ++delivered)
            throw new Error(`a delivery of ${stream} was lost after message ${message.seq}`)
          largest = Math.max(largest, message.data.length)
          yield message
        }
        most = Math.max(1, Math.min(2 * most, MAX_BATCH, Math.floor(BYTES / largest)))
        if (delivered === before && !closed) yield undefined
      }
    } finally {
      closed = true
      current?.stop()
      void nats.manager.consumers.delete(stream, name).catch(() => {})
    }
  }
  return {
    messages: read(),
    close: () => {
      closed = true
      current?.stop()
    },
  }
}
