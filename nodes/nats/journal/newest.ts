/**
 * Reads single messages from the leader of their stream. Direct gets are not used, because replicas
 * may answer them and may lag behind.
 */
import { type ApiError, JetStreamApiError } from '@nats-io/jetstream'
import { Empty, type MsgHdrs, MsgHdrsImpl } from '@nats-io/transport-node'
import { codes } from '../failures.ts'
import type { Nats } from '../server/connect.ts'

/** A stored message. */
export interface Newest {
  readonly sequence: number
  readonly data: Uint8Array
  readonly headers: MsgHdrs | undefined
}
interface Answer {
  readonly error?: ApiError
  readonly message?: { readonly seq: number; readonly data?: string; readonly hdrs?: string }
}
const encoder = new TextEncoder()

/**
 * Returns the newest message of a subject; undefined if the subject has no message.
 * @param timeout milliseconds to wait for the answer.
 * @throws JetStreamApiError when the server reports an error, for example that the stream does not
 *   exist.
 * @throws Error any error of `RequestMux.ask`.
 */
export const newest = (
  nats: Nats,
  stream: string,
  subject: string,
  timeout: number,
): Promise<Newest | undefined> => read(nats, stream, { last_by_subj: subject }, timeout)
/**
 * Returns the message with the given sequence; undefined if it is missing. Parameters as for
 * `newest`.
 */
export const messageAt = (
  nats: Nats,
  stream: string,
  seq: number,
  timeout: number,
): Promise<Newest | undefined> => read(nats, stream, { seq }, timeout)

async function read(
  nats: Nats,
  stream: string,
  wanted: { readonly seq: number } | { readonly last_by_subj: string },
  timeout: number,
): Promise<Newest | undefined> {
  const answer = await nats.ask(
    `${nats.space.api}.STREAM.MSG.GET.${stream}`,
    encoder.encode(JSON.stringify(wanted)),
    undefined,
    timeout,
  )
  const { error, message } = answer.json<Answer>()
  if (error?.err_code === codes.noMessageFound) return undefined
  if (error) throw new JetStreamApiError(error)
  if (!message) throw new Error(`${stream}: the answer holds no message`)
  return {
    sequence: message.seq,
    data: message.data === undefined ? Empty : Buffer.from(message.data, 'base64'),
    headers:
      message.hdrs === undefined
        ? undefined
        : MsgHdrsImpl.decode(Buffer.from(message.hdrs, 'base64')),
  }
}

/**
 * Whether the message is the delete marker of a bucket key
 * (https://docs.nats.io/nats-concepts/jetstream/key-value-store).
 */
export const isMarker = ({ headers }: Newest): boolean => headers?.has('KV-Operation') ?? false
