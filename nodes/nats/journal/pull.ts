/**
 * Reads a stream in order, through a named consumer in the server's memory and with small fetches.
 * The server sends only what was fetched, so messages do not pile up in the memory of a slow
 * reader.
 *
 * Invariants:
 * P1. Messages are yielded in order and without gaps. A message that is out of sequence ends the
 *     read with an error.
 * P2. A read does not recover from errors. The caller decides where to resume (journal.ts,
 *     follow.ts).
 * P3. The consumer is deleted at the end of the read, or by the server 30 s after the last fetch.
 */
import {
  AckPolicy,
  type ConsumerMessages,
  DeliverPolicy,
  type JsMsg,
  ReplayPolicy,
} from '@nats-io/jetstream'
import { nanos, nuid } from '@nats-io/transport-node'
import type { Nats } from '../server/connect.ts'

export interface Pulling {
  /**
   * Yields the received messages, and `undefined` when none arrived for `idle` milliseconds. Ends
   * after `close`.
   */
  readonly messages: AsyncGenerator<JsMsg | undefined, void>
  close(): void
}
/** Default number of messages in the first fetch. */
const FIRST_BATCH = 8
/** Maximum number of messages in each later fetch. */
const MAX_BATCH = 256
/**
 * Default maximum size of one fetch in bytes, as estimated from the largest message of the previous
 * fetch. The server drops a connection with more than 64 MB of pending data (its `max_pending`),
 * and all readers share the connection.
 */
const MAX_FETCH_BYTES = 8 * 1_048_576

/**
 * Adds a consumer for reading a stream in order, beginning with the sequence `from`, and returns
 * the name of the consumer. The server deletes the consumer 30 s after the last fetch.
 * @param subject limits the read to messages of this subject.
 */
export async function addReader(
  nats: Nats,
  stream: string,
  from: number,
  subject?: string,
): Promise<string> {
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
  return name
}

/**
 * Reads a stream, beginning with the sequence `from`.
 * @param subject limits the read to messages of this subject.
 * @param idle milliseconds that one fetch waits for messages, at least 1000.
 * @param first number of messages in the first fetch, for callers that expect many.
 * @param bytes maximum size of one fetch in bytes.
 */
export async function pull(
  nats: Nats,
  stream: string,
  from: number,
  {
    subject,
    idle = 5000,
    first = FIRST_BATCH,
    bytes = MAX_FETCH_BYTES,
  }: { subject?: string; idle?: number; first?: number; bytes?: number } = {},
): Promise<Pulling> {
  const name = await addReader(nats, stream, from, subject)
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
        most = Math.max(1, Math.min(2 * most, MAX_BATCH, Math.floor(bytes / largest)))
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
