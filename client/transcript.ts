/**
 * Follows a session over HTTP, in browsers and in Node.js: pages first, then the stream. When the
 * stream ends, the client reconnects from the last cursor. Requests use only `fetch`. The state of
 * a transcript is in `transcript/fold.ts`.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import type { TranscriptSnapshot } from '../protocol/sessions/schema.ts'
import {
  EVENT_STREAM,
  isMediaType,
  isTemporary,
  JSON_TYPE,
  notBaton,
  retryAfterMs,
} from './http.ts'
import { Transcript, type TranscriptFrame } from './transcript/fold.ts'
import { endedBySignal, untilAborted, type Watchdog, watchdog } from './watchdog.ts'

export { Transcript, type TranscriptFrame } from './transcript/fold.ts'

/** Identifies the session, the service and the credentials. */
export interface TranscriptSource {
  /**
   * Base address, such as `http://127.0.0.1:8080`. If several are given, the next one is tried when
   * one is unavailable.
   */
  readonly url: string | readonly string[]
  readonly session_id: string
  /** Handle of the project; `default` if absent. */
  readonly project?: string
  /** API key or token; absent if the requests are authenticated in another way. */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly fetch?: typeof fetch
  readonly signal?: AbortSignal
}
export interface FollowTranscript extends TranscriptSource {
  /** The transcript to continue; a new one by default. */
  readonly transcript?: Transcript
  /** Whether to continue after the session has become idle; by default, the iteration ends. */
  readonly forever?: boolean
  /** Called with every new cursor, so that the caller can store it and continue from it later. */
  readonly onCursor?: (cursor: string) => void
  /** Called after every interruption, before the next attempt. */
  readonly onReconnect?: (reason: string) => void
  /**
   * Milliseconds without a byte after which a stream is abandoned; 45 s by default, which is three
   * of the server's keepalive intervals.
   */
  readonly silence?: number
  /** Waits for a number of milliseconds; replaces the default timer. */
  readonly pause?: (ms: number) => Promise<void>
}
/**
 * The error of a request that the service rejected. `status` is the HTTP status; 429, 500, 502, 503,
 * 504 and 505 are temporary. `code` is the error code of the service, or `unexpected_response` if the
 * response is not from a Baton service. `retry_after_ms` is the wait that the response requests.
 */
export class TranscriptRefused extends Error {
  readonly status: number
  readonly code: string
  readonly retry_after_ms: number | undefined
  constructor(status: number, code: string, message: string, retryAfterMs?: number) {
    super(message)
    this.name = 'TranscriptRefused'
    this.status = status
    this.code = code
    this.retry_after_ms = retryAfterMs
  }
}
/**
 * The current transcript, and the frame that last changed it; `frame` is absent if pages were read.
 */
export interface TranscriptStep {
  readonly transcript: Transcript
  readonly frame?: TranscriptFrame
}

const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))
/** Milliseconds before a broken connection is opened again. */
const RECONNECT_DELAY_MS = 1000

/**
 * Reads the part of the transcript after its cursor, page by page, without retries. Without a
 * cursor, only the newest page is read.
 * @throws TranscriptRefused if the service rejects a request; also any error that `fetch` throws.
 */
export async function readTranscript(
  source: TranscriptSource,
  transcript = new Transcript(),
  address = addresses(source),
): Promise<Transcript> {
  for (let token: string | undefined, more = true; more; ) {
    const query =
      token !== undefined
        ? `?page_token=${token}`
        : transcript.cursor === undefined
          ? ''
          : `?cursor=${transcript.cursor}`
    const answer = await ask(source, address, `transcript${query}`, JSON_TYPE)
    const page = (await answer.json()) as TranscriptSnapshot
    transcript.page(page)
    token = page.next_page_token
    more = page.has_more && token !== undefined
  }
  return transcript
}

/**
 * Follows a session until it is idle (unless `forever` is set) or `signal` aborts.
 * @throws TranscriptRefused if the service rejects a request permanently.
 */
export async function* followTranscript(options: FollowTranscript): AsyncGenerator<TranscriptStep> {
  const { transcript = new Transcript(), signal, silence = 45_000, pause = wait } = options
  const address = addresses(options)
  for (let loaded = false; !signal?.aborted; ) {
    const watch = watchdog(silence, signal)
    let reason = 'the connection was lost'
    let delay = RECONNECT_DELAY_MS
    try {
      if (!loaded) {
        await readTranscript({ ...options, signal: watch.signal }, transcript, address)
        loaded = true
        if (transcript.cursor !== undefined) options.onCursor?.(transcript.cursor)
        yield { transcript }
      }
      transcript.begin()
      const answer = await ask(
        { ...options, signal: watch.signal },
        address,
        `transcript/stream${transcript.cursor === undefined ? '' : `?cursor=${transcript.cursor}`}`,
        EVENT_STREAM,
      )
      for await (const { id, frame } of frames(answer, watch)) {
        const before = transcript.cursor
        transcript.apply(frame, id)
        if (transcript.cursor !== undefined && transcript.cursor !== before)
          options.onCursor?.(transcript.cursor)
        yield { transcript, frame }
        if (frame.event_type !== 'stream.end') continue
        if (frame['reason'] === 'idle' && !options.forever) return
        reason = `the server ended the stream: ${String(frame['reason'])}`
        delay = frame['reason'] === 'rotate' ? 0 : RECONNECT_DELAY_MS
        break
      }
    } catch (error) {
      if (signal?.aborted) return
      if (error instanceof TranscriptRefused) {
        if (!isTemporary(error.status)) throw error
        delay = error.retry_after_ms ?? delay
      }
      reason = watch.silent()
        ? `no data received for ${silence / 1000} s`
        : error instanceof Error
          ? error.message
          : String(error)
      address.next()
    } finally {
      watch.stop()
    }
    options.onReconnect?.(reason)
    if (delay > 0 && !signal?.aborted) await untilAborted(pause(delay), signal)
  }
}

interface Addresses {
  now(): string
  next(): void
}
function addresses({ url, project = 'default', session_id }: TranscriptSource): Addresses {
  const all = typeof url === 'string' ? [url] : url
  let at = 0
  return {
    now: () =>
      `${(all[at % all.length] ?? '').replace(/\/$/, '')}/v1/projects/` +
      `${encodeURIComponent(project)}/sessions/${encodeURIComponent(session_id)}/`,
    next: () => {
      at++
    },
  }
}
async function ask(
  { key, headers, signal, fetch: send = fetch }: TranscriptSource,
  address: Addresses,
  path: string,
  accept: string,
): Promise<Response> {
  const answer = await endedBySignal(send)(address.now() + path, {
    headers: { accept, ...(key !== undefined && { authorization: `Bearer ${key}` }), ...headers },
    ...(signal && { signal }),
  })
  if (answer.ok) {
    if (isMediaType(answer, accept)) return answer
    throw new TranscriptRefused(
      answer.status,
      'unexpected_response',
      notBaton(address.now(), answer, accept),
    )
  }
  const { error } = (await answer.json().catch(() => ({}))) as {
    error?: { code?: string; message?: string }
  }
  throw new TranscriptRefused(
    answer.status,
    error?.code ?? 'internal',
    error?.message ?? `${answer.status} ${answer.statusText}`,
    retryAfterMs(answer),
  )
}

async function* frames(
  { body }: Response,
  watch: Watchdog,
): AsyncGenerator<{ readonly id?: string; readonly frame: TranscriptFrame }> {
  if (!body) return
  const seen = new TransformStream<string, string>({
    transform: (text, out) => {
      watch.alive()
      out.enqueue(text)
    },
  })
  const reader = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(seen)
    .pipeThrough(new EventSourceParserStream())
    .getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const { id, data } = read.value as { id?: string; data: string }
      yield { ...(id !== undefined && { id }), frame: JSON.parse(data) as TranscriptFrame }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
