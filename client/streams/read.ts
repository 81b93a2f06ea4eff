/**
 * The wire format of the multiplexed stream (`stream.follow`): its request and its frames. Node
 * programs (`follow.ts`) and browsers (`console/live/`) share it, so it uses no Node modules.
 */
import { createParser } from 'eventsource-parser'
import type { StreamSubscription } from '../../protocol/streams/rows.ts'

/** The path of the row `stream.follow`. */
export const STREAMS_PATH = '/v1/streams'

/**
 * A frame of the multiplexed stream. `event` is the event name in the separate stream of the topic,
 * or `subscription.started`, `subscription.refused`, `subscription.ended`, or `changes`. `cursor`
 * is the position after the frame. It is absent from frames after which a client cannot resume.
 */
export interface StreamMessage {
  readonly subscription: string
  readonly event: string
  readonly cursor?: number | string
  readonly data: Readonly<Record<string, unknown>>
}

/** Creates the request of a stream, without its credential. */
export const streamRequest = (
  subscriptions: readonly StreamSubscription[],
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): RequestInit => ({
  method: 'POST',
  headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
  body: JSON.stringify({ subscriptions }),
  signal,
})

/**
 * Yields the frames of a body, in arrays of frames that arrived together. The body is cancelled
 * when the iteration stops. Rejects when the connection is lost.
 * @param alive called when data arrives.
 * @param retry called with the pause in milliseconds that the service requests before a reconnect.
 */
export async function* readStream(
  body: NonNullable<Response['body']>,
  alive: () => void,
  retry: (ms: number) => void,
): AsyncGenerator<readonly StreamMessage[]> {
  const arrived: StreamMessage[] = []
  const parser = createParser({
    onEvent: ({ data }) => arrived.push(JSON.parse(data) as StreamMessage),
    onRetry: retry,
  })
  const decoder = new TextDecoder()
  // Not every browser can iterate over a body.
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      alive()
      parser.feed(decoder.decode(value as Uint8Array, { stream: true }))
      if (arrived.length > 0) yield arrived.splice(0)
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
