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

/** Header that makes a publication a compare-and-set on the last sequence of its subject (nats-server, ADR-50 and before). */
export const EXPECTED = 'Nats-Expected-Last-Subject-Sequence'
/** Milliseconds between two looks at what is overdue: how much later than asked for a timeout can come. */
const LOOK = 100

/**
 * Store one message. Gives its sequence in the stream.
 * @param timeout milliseconds to wait for the acknowledgement.
 * @throws JetStreamApiError when the stream refuses it, NoRespondersError when there is no stream, TimeoutError,
 * ClosedConnectionError; InvalidArgumentError when it is larger than the server accepts.
 */
export type Publish = (subject: string, data: Uint8Array, headers: MsgHdrs | undefined, timeout: number) => Promise<number>

interface Sent {
  readonly subject: string
  readonly until: number
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
  const inbox = createInbox()
  let counter = 0
  let looking: NodeJS.Timeout | undefined
  let begun = false

  const answered = (_: Error | null, message: Msg): void => {
    const number = message.subject.slice(inbox.length + 1)
    const waiting = sent.get(number)
    if (!waiting) return
    sent.delete(number)
    try {
      waiting.done(sequenceOf(message, waiting.subject))
    } catch (error) {
      waiting.failed(error as Error)
    }
  }
  const look = (): void => {
    const now = performance.now()
    for (const [number, waiting] of sent) {
      if (waiting.until > now) continue
      sent.delete(number)
      waiting.failed(new TimeoutError())
    }
    looking = sent.size > 0 ? setTimeout(look, LOOK) : undefined
  }
  const begin = (): void => {
    begun = true
    connection.subscribe(`${inbox}.*`, { callback: answered })
    void connection.closed().then(() => {
      for (const waiting of sent.values()) waiting.failed(new ClosedConnectionError())
      sent.clear()
    })
  }

  return (subject, data, headers, timeout) => new Promise((done, failed) => {
    if (connection.isClosed()) return failed(new ClosedConnectionError())
    if (!begun) begin()
    const number = (counter++).toString(36)
    sent.set(number, { subject, until: performance.now() + timeout, done, failed })
    if (looking === undefined) looking = setTimeout(look, LOOK)
    try {
      connection.publish(subject, data, { reply: `${inbox}.${number}`, ...(headers && { headers }) })
    } catch (error) {
      sent.delete(number)
      failed(error as Error)
    }
  })
}
