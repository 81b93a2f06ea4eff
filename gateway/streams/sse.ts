/**
 * Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html): frames, the head of a stream, and
 * what keeps a quiet one alive.
 */
import { wholeOf } from '../../protocol/common.ts'
import type { World } from '../ports.ts'
import type { Exchange, Sink } from '../http/respond.ts'

/** One frame of data that is JSON on one line already; without an id the frame is no place to resume from. */
export const frameOf = (event: string, json: string, id?: number): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${json}\n\n`
/** One frame. */
export const frame = (event: string, data: unknown, id?: number): string =>
  frameOf(event, JSON.stringify(data), id)

/** A cursor from a query or from `Last-Event-ID`, or undefined when the text is none. */
export const cursorOfText = (text: string): number | undefined =>
  text.startsWith('-') ? undefined : wholeOf(text)

/** Asks the client to wait so many milliseconds before it connects again; no event of its own. */
export const retryFrame = (ms: number): string => `retry: ${Math.round(ms)}\n\n`

/**
 * Says where a stream begins whose client named no cursor: a comment, and an id without an event. Clients that follow the standard
 * (section 9.2.6, "event stream interpretation") resume from that id when the connection breaks before the first event.
 */
export const beginFrame = (cursor: number): string => `: begins after ${cursor}\nid: ${cursor}\n\n`

/** The frame that says that entries between two cursors are no longer kept. */
export const resetFrame = (requested: number, resumed_from: number): string =>
  frame('stream.reset', { reason: 'cursor_too_old', requested, resumed_from })

/**
 * Begin a stream of events on an exchange. @param comment what goes out every `settings.keepalive` milliseconds, and first.
 * @param onBeat runs with every keepalive.
 */
export function openStream(
  world: World,
  exchange: Exchange,
  comment: string,
  onBeat: () => void,
): Sink {
  const beat = `${comment}\n\n`
  // A connection that carried a stream is not used again: a gateway that ends its streams wants their clients elsewhere.
  const sink = exchange.stream(
    {
      Connection: 'close',
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    },
    beat,
  )
  if (sink.closed) return sink
  world.count.open('sse', 1)
  let cancel = () => {}
  const next = () => {
    cancel = world.later(world.settings.keepalive, () => {
      if (sink.closed) return
      if (!sink.full) sink.write(beat)
      onBeat()
      next()
    })
  }
  next()
  sink.onClose(() => {
    cancel()
    world.count.open('sse', -1)
  })
  return sink
}
