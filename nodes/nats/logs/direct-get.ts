/**
 * Reads several messages of one subject with one request, a batched direct get
 * (https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-31.md). The client
 * library has the same function, but leaves a subscription open after each call.
 */
import type { Msg } from '@nats-io/transport-node'
import type { Nats } from '../server/connect.ts'

/** A message of a stream. `pending` is the number of later messages of the same subject. */
export interface Message {
  readonly sequence: number
  readonly pending: number
  readonly data: Uint8Array
}
export interface DirectGet {
  /** Name of the stream, which must allow direct gets. */
  readonly stream: string
  /** The subject of the messages. */
  readonly subject: string
  /** The sequence from which messages are read. */
  readonly from: number
  /** Maximum number of messages. */
  readonly batch: number
  /** Maximum total number of bytes of the messages. At least one message is read. */
  readonly bytes: number
  /** Milliseconds to wait for each message. */
  readonly timeout: number
}

/** Status code at the end of the batch. */
const END_OF_BATCH = 204
/** Status code if no message matches. */
const NOT_FOUND = 404

/**
 * Returns the first messages of a subject whose sequence is at least `from`.
 * @throws Error when the stream cannot be read, or a message does not arrive in time.
 */
export function directGet(
  { connection, space }: Nats,
  { stream, subject, from, batch, bytes, timeout }: DirectGet,
): Promise<Message[]> {
  return new Promise((done, failed) => {
    const found: Message[] = []
    const inbox = space.newInbox()
    const over = (error?: Error) => {
      clearTimeout(timer)
      subscription.unsubscribe()
      if (error) failed(error)
      else done(found)
    }
    const late = () => over(new Error(`a direct get from ${stream} was not answered in time`))
    let timer = setTimeout(late, timeout)
    const subscription = connection.subscribe(inbox, {
      callback: (error, message) => {
        if (error) return over(error)
        const { code = 0, description = '' } = message.headers ?? {}
        if (code === END_OF_BATCH || code === NOT_FOUND) return over()
        if (code !== 0) return over(new Error(`${stream}: ${code} ${description}`))
        found.push(messageOf(message))
        clearTimeout(timer)
        timer = setTimeout(late, timeout)
      },
    })
    const query = { seq: Math.max(1, from), next_by_subj: subject, batch, max_bytes: bytes }
    try {
      const to = `${space.api}.DIRECT.GET.${stream}`
      connection.publish(to, JSON.stringify(query), { reply: inbox })
    } catch (error) {
      over(error as Error)
    }
  })
}

const messageOf = ({ headers, data }: Msg): Message => ({
  sequence: Number(headers?.get('Nats-Sequence')),
  pending: Number(headers?.get('Nats-Num-Pending')),
  data,
})
