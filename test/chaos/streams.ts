/**
 * Follows a stream over several connections, each starting from the id of the last frame, and
 * records every frame that has an id. The frames are not sorted, so gaps and repeats stay visible.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { endedBySignal, watchdog } from '../../client/watchdog.ts'

interface SeenFrame {
  readonly id: number
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}
export interface Followed {
  readonly name: string
  /** Frames as `id/type`, in order of arrival. */
  readonly frames: string[]
  connections: number
  /** For each connection, the number of frames that had been received when it began. */
  readonly joints: number[]
  /** Responses that are neither streams nor temporary failures, and resets of the stream. */
  readonly oddities: string[]
  /**
   * Connections without frames: their start and end, in seconds since following began, and the
   * reason why each ended.
   */
  readonly vain: string[]
}
interface Options {
  readonly name: string
  readonly urls: readonly string[]
  readonly key: string
  /** The path below `/v1`; may include a query. */
  readonly path: string
  /**
   * The index of the gateway for the first connection. Each additional connection uses the next
   * gateway.
   */
  readonly first: number
  readonly signal: AbortSignal
  /** Called for every frame with an id. If it returns true, following ends. */
  on(frame: SeenFrame): boolean
}
/**
 * Milliseconds without a byte after which a connection is closed: more than two keepalive intervals
 * of these servers.
 */
const SILENCE_MS = 8000

/**
 * Starts following. `done` resolves once `on` has returned true, the signal is aborted, or a
 * request was permanently refused.
 */
export function follow({
  name,
  urls,
  key,
  path,
  first,
  signal,
  on,
}: Options): Followed & { readonly done: Promise<void> } {
  const followed: Followed = {
    name,
    frames: [],
    connections: 0,
    joints: [],
    oddities: [],
    vain: [],
  }
  const began = performance.now()
  const seconds = (): string => ((performance.now() - began) / 1000).toFixed(1)
  let cursor = ''
  /**
   * Follows the stream over one connection until the connection ends. Returns true when following
   * has ended.
   */
  async function connection(url: string): Promise<boolean> {
    const [from, before] = [seconds(), followed.frames.length]
    let why = 'it ended'
    const watch = watchdog(SILENCE_MS, signal)
    try {
      const answer = await endedBySignal(fetch)(`${url}/v1${path}`, {
        headers: {
          authorization: `Bearer ${key}`,
          accept: 'text/event-stream',
          ...(cursor !== '' && { 'last-event-id': cursor }),
        },
        signal: watch.signal,
      })
      if (!answer.ok || !answer.body) {
        why = String(answer.status)
        const final = answer.status < 500 && answer.status !== 429
        if (final)
          followed.oddities.push(`${name} was answered ${answer.status} ${await answer.text()}`)
        return final
      }
      followed.connections++
      followed.joints.push(followed.frames.length)
      const alive = new TransformStream<string, string>({
        transform: (text, out) => {
          watch.alive()
          out.enqueue(text)
        },
      })
      const frames = answer.body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(alive)
        .pipeThrough(new EventSourceParserStream()) as unknown as AsyncIterable<{
        id?: string
        event?: string
        data: string
      }>
      for await (const { id, event = 'message', data } of frames) {
        if (event === 'stream.reset') followed.oddities.push(`${name} was reset: ${data}`)
        if (id === undefined || id === '') continue
        cursor = id
        followed.frames.push(`${id}/${event}`)
        if (on({ id: Number(id), type: event, data: JSON.parse(data) as SeenFrame['data'] }))
          return true
      }
      return false
    } catch (error) {
      // The connection is broken, silent or unavailable. The next one continues after the cursor.
      why = signal.aborted ? 'still open' : watch.silent() ? 'silent' : String(error)
      return false
    } finally {
      if (followed.frames.length === before) followed.vain.push(`${from} to ${seconds()} s: ${why}`)
      watch.stop()
    }
  }
  const done = (async () => {
    for (let at = first; !signal.aborted; at++) {
      if (await connection(urls[at % urls.length] ?? '')) return
      await new Promise((next) => setTimeout(next, 100))
    }
  })()
  return Object.assign(followed, { done })
}
