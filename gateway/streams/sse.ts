/**
 * Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html): frames, the
 * start of a stream, and its keepalive. Frame ids are cursors (`protocol/entry.ts`).
 */
import { wholeOf } from '../../protocol/common.ts'
import type { Exchange, Sink } from '../http/respond.ts'
import type { World } from '../ports.ts'
import { every } from '../timing.ts'

/**
 * A frame whose data is JSON on one line already. Without an id, a client cannot resume after the
 * frame.
 */
export const frameOf = (event: string, json: string, id?: number): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${json}\n\n`
/** A frame with any data. */
export const frame = (event: string, data: unknown, id?: number): string =>
  frameOf(event, JSON.stringify(data), id)

/** The cursor of a query or of `Last-Event-ID`; undefined when the text is not a cursor. */
export const cursorOfText = (text: string): number | undefined =>
  text.startsWith('-') ? undefined : wholeOf(text)

/** Asks the client to wait this many milliseconds before it reconnects; it is not an event. */
export const retryFrame = (ms: number): string => `retry: ${Math.round(ms)}\n\n`

/**
 * Reports the start position of a stream whose client sent no cursor: a comment, and an id without
 * an event. Clients that follow the standard (section 9.2.6, "event stream interpretation") resume
 * from that id when the connection breaks before the first event.
 */
export const beginFrame = (cursor: number): string => `: begins after ${cursor}\nid: ${cursor}\n\n`

/** The frame which reports that entries between two cursors are no longer stored. */
export const resetFrame = (requested: number, resumed_from: number): string =>
  frame('stream.reset', { reason: 'cursor_too_old', requested, resumed_from })

/**
 * Opens a stream of events on an exchange.
 * @param comment sent first, and then every `settings.keepalive` milliseconds.
 * @param onBeat called at every keepalive.
 */
export function openStream(
  world: World,
  exchange: Exchange,
  comment: string,
  onBeat: () => void,
): Sink {
  const beat = `${comment}\n\n`
  // The connection of a stream is not reused: when a gateway ends its streams, their clients should
  // connect elsewhere.
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
  const stopBeating = every(world, world.settings.keepalive, () => {
    if (sink.closed) return
    if (!sink.full) sink.write(beat)
    onBeat()
  })
  sink.onClose(() => {
    stopBeating()
    world.count.open('sse', -1)
  })
  return sink
}
