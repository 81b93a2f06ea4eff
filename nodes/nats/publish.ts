/**
 * Storing messages in streams, many at a time. All acknowledgements of a connection come to one subscription, told apart
 * by a number, and one timer watches over all of them: a message costs its bytes and one promise.
 *
 * Invariants:
 * P1. A promise is settled once: by the server's answer, by its time being over, or because the connection closed. The last
 *     two say nothing about whether the message was stored.
 * P2. Nothing is sent twice: whoever repeats knows what a repeat means.
 */
import { JetStreamApiError, type ApiError } from '@nats-io/jetstream'
import { ClosedConnectionError, createInbox, NoRespondersError, TimeoutError, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node'
import { Overdue, type Limited } from './overdue.ts'

/** Header that makes a publication a compare-and-set on the last sequence of its subject (https://docs.nats.io/nats-concepts/jetstream/headers). */
export const EXPECTED = 'Nats-Expected-Last-Subject-Sequence'

/**
 * Store one message. Gives its sequence in the stream.
 * @param timeout milliseconds to wait for the acknowledgement.
 * @throws JetStreamApiError when the stream refuses it, NoRespondersError when there is no stream, TimeoutError,
 * ClosedConnectionError; InvalidArgumentError when it is larger than the server accepts.
 */
export type Publish = (subject: string, data: Uint8Array, headers: MsgHdrs | undefined, timeout: number) => Promise<number>

interface Sent extends Limited {
  readonly subject: string
  readonly done: (sequence: number) => void
  readonly failed: (error: Error) => void
}
interface Acknowledgement { readonly stream?: string; readonly seq?: number; readonly error?: ApiError }

/** The sequence that an acknowledgement names. Throws what it says instead. */
function sequenceOf(message: Msg, subject: string): number {
  if (message.data.length === 0 && message.headers?.code === 503) throw new NoRespondersError(subject)
  const { error, seq, stream } = message.json<Acknowledgement>()
  if (error) throw new JetStreamApiError(error)
  if (typeof seq !== 'number' || !stream) throw new Error(`${subject}: the acknowledgement names no message`)
  return seq
}

/** The publisher of a connection. */
export function createPublisher(connection: NatsConnection): Publish {
  const sent = new Map<string, Sent>()
  const overdue = new Overdue<Sent>()
  const inbox = createInbox()
  let counter = 0
  let begun = false

  const answered = (_: Error | null, message: Msg): void => {
    const number = message.subject.slice(inbox.length + 1)
    const waiting = sent.get(number)
    if (!waiting) return
    sent.delete(number)
    overdue.delete(waiting)
    try {
      waiting.done(sequenceOf(message, waiting.subject))
    } catch (error) {
      waiting.failed(error as Error)
    }
  }
  const begin = (): void => {
    begun = true
    connection.subscribe(`${inbox}.*`, { callback: answered })
    void connection.closed().then(() => overdue.end())
  }

  return (subject, data, headers, timeout) => new Promise((done, failed) => {
    if (connection.isClosed()) return failed(new ClosedConnectionError())
    if (!begun) begin()
    const number = (counter++).toString(36)
    const over = () => {
      sent.delete(number)
      failed(connection.isClosed() ? new ClosedConnectionError() : new TimeoutError())
    }
    const waiting: Sent = { subject, until: performance.now() + timeout, done, failed, over }
    sent.set(number, waiting)
    overdue.add(waiting)
    try {
      connection.publish(subject, data, headers ? { reply: `${inbox}.${number}`, headers } : { reply: `${inbox}.${number}` })
    } catch (error) {
      sent.delete(number)
      overdue.delete(waiting)
      failed(error as Error)
    }
  })
}
