/**
 * Requests an event stream again until its sequence is over. An attempt ends when the server ends
 * the stream, refuses it temporarily, or is silent for too long. The next attempt follows after a
 * pause, which grows until a frame arrives. If a connection failed, it uses the next address.
 */
import { BatonError, reasonOf, requireEventStream } from '../errors.ts'
import { reasonToRepeat, type Transport } from '../transport.ts'
import { endedBySignal, untilAborted, watchdog } from '../watchdog.ts'

export interface ReconnectOptions {
  readonly signal?: AbortSignal
  /** Called after every interruption, before the next attempt. */
  readonly onReconnect?: (reason: string) => void
  /**
   * Milliseconds without a byte after which a stream is abandoned; 45 s by default, which is three
   * of the server's keepalive intervals.
   */
  readonly silence?: number
}
/** What the reader of a stream reports about it. */
interface StreamProgress {
  /** Data arrived. */
  alive(): void
  /** A frame arrived. The pause before the next attempt is short again. */
  received(): void
  /** The server requests this pause in milliseconds before the next attempt. */
  retry(ms: number): void
}
/** A sequence that is read through successive streams. */
export interface StreamedSequence<T> {
  /** Returns the request of the next attempt, which begins after the frames read so far. */
  request(signal: AbortSignal): { readonly path: string; readonly init: RequestInit }
  /**
   * Yields the frames of one stream.
   * @returns whether the sequence is over.
   */
  read(
    body: NonNullable<Response['body']>,
    progress: StreamProgress,
  ): AsyncGenerator<T, boolean, undefined>
}

/** Milliseconds before the next attempt: `first`, doubled for each failure up to `last`. */
const PAUSE_MS = { first: 50, last: 2000 } as const

/**
 * Yields the frames of a sequence until it is over or `signal` aborts.
 * @throws BatonError if the service refuses the request (with a 4xx status other than 429), or if
 * the response is not from a Baton service.
 */
export async function* reconnecting<T>(
  transport: Transport,
  { request, read }: StreamedSequence<T>,
  { signal, onReconnect, silence = 45_000 }: ReconnectOptions,
): AsyncGenerator<T> {
  for (let failures = 0; !signal?.aborted; failures++) {
    const { url } = transport
    const watch = watchdog(silence, signal)
    let reason = 'the server ended the stream'
    let pause: number | undefined
    let retryAfter: number | undefined
    try {
      const { path, init } = request(watch.signal)
      const answer = await endedBySignal(transport.fetch)(url + path, init)
      if (!answer.ok) {
        ;({ reason, retryAfter } = await reasonToRepeat(transport, url, answer))
      } else if (answer.body) {
        requireEventStream(url, answer)
        const isOver = yield* read(answer.body, {
          alive: watch.alive,
          received: () => (failures = -1),
          retry: (ms) => (pause = ms),
        })
        if (isOver) return
      }
    } catch (error) {
      if (signal?.aborted) return
      if (error instanceof BatonError && isPermanent(error)) throw error
      reason = watch.silent() ? `no data received for ${silence / 1000} s` : reasonOf(error)
      transport.next(url)
    } finally {
      watch.stop()
    }
    if (signal?.aborted) return
    onReconnect?.(reason)
    const backoff = Math.min(PAUSE_MS.last, PAUSE_MS.first * 2 ** Math.max(0, failures))
    await untilAborted(transport.pause(pause ?? backoff, retryAfter), signal)
  }
}

const isPermanent = ({ status, code }: BatonError): boolean =>
  code === 'unexpected_response' || (status >= 400 && status < 500 && status !== 429)
