/** Stores messages in streams. Many publications can be in flight at a time. */
import { type ApiError, JetStreamApiError } from '@nats-io/jetstream'
import { headers, type Msg, type MsgHdrs } from '@nats-io/transport-node'
import type { RequestMux } from '../request-mux.ts'

/**
 * Header that makes a publication a compare-and-set on the last sequence of its subject
 * (https://docs.nats.io/nats-concepts/jetstream/headers).
 */
export const EXPECTED = 'Nats-Expected-Last-Subject-Sequence'

/**
 * Returns headers with which a value is stored only if its key has this revision. With 0, the value
 * is stored only if the key does not exist.
 */
export const onlyAfter = (revision: number): MsgHdrs => {
  const made = headers()
  made.set(EXPECTED, String(revision))
  return made
}

/**
 * Stores one message and returns its sequence in the stream. The message is sent only once. The
 * caller decides whether a repeat is safe.
 * @param timeout milliseconds to wait for the acknowledgement.
 * @throws JetStreamApiError when the stream rejects the message.
 * @throws NoRespondersError when there is no stream, or the stream has no leader.
 * @throws Error any other error of `RequestMux.ask`.
 */
export type Publish = (
  subject: string,
  data: Uint8Array,
  headers: MsgHdrs | undefined,
  timeout: number,
) => Promise<number>

interface Acknowledgement {
  readonly stream?: string
  readonly seq?: number
  readonly error?: ApiError
}

/**
 * Returns the sequence in an acknowledgement.
 * @throws JetStreamApiError when the acknowledgement reports an error.
 */
function sequenceOf(message: Msg, subject: string): number {
  const { error, seq, stream } = message.json<Acknowledgement>()
  if (error) throw new JetStreamApiError(error)
  if (typeof seq !== 'number' || !stream)
    throw new Error(`${subject}: the acknowledgement names no message`)
  return seq
}

/** Creates the publisher of a connection. */
export const createPublisher =
  (ask: RequestMux['ask']): Publish =>
  async (subject, data, headers, timeout) =>
    sequenceOf(await ask(subject, data, headers, timeout), subject)
