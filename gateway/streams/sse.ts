/**
 * Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html): the format
 * of frames, and the start and keepalive of a stream. The ids of frames in this file are cursors
 * (`protocol/entry.ts`).
 */
import { wholeOf } from '../../protocol/common.ts'
import type { Exchange, Sink } from '../http/respond.ts'
import type { World } from '../ports.ts'
import { every } from '../timing.ts'

/**
 * Escapes the characters in JSON that `JSON.stringify` leaves as they are although some clients
 * treat them as line breaks.
 */
export const oneLine = (json: string): string =>
  // Three calls of `replaceAll` are several times as fast as a single regular expression.
  json
    .replaceAll('\u0085', '\\u0085')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029')
/** Returns a frame whose data is JSON. Without an id, a client cannot resume after the frame. */
const frameOf = (event: string, json: string, id?: number): string =>
  frameOfLine(event, oneLine(json), id)
/** As `frameOf`, for JSON that `oneLine` returned. */
export const frameOfLine = (event: string, line: string, id?: number): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${line}\n\n`
/** Returns a frame whose data is encoded as JSON. */
export const frame = (event: string, data: unknown, id?: number): string =>
  frameOf(event, JSON.stringify(data), id)

/**
 * Parses the cursor in a `Last-Event-ID` header. Returns undefined when the text is not a cursor.
 */
export const cursorOfText = (text: string): number | undefined =>
  text.startsWith('-') ? undefined : wholeOf(text)

/**
 * Returns the frame that sets the time in milliseconds for which a client waits before it
 * reconnects. The frame is not an event.
 */
export const retryFrame = (ms: number): string => `retry: ${Math.round(ms)}\n\n`

/**
 * Returns the frame that reports the start position to a client that sent no cursor: a comment, and
 * an id without an event. Clients that follow the standard (section 9.2.6, "Interpreting an event
 * stream") resume from this id when the connection is lost before the first event.
 */
export const beginFrame = (cursor: number): string => `: begins after ${cursor}\nid: ${cursor}\n\n`

/** Returns the frame that reports that items between two cursors are no longer stored. */
export const resetFrame = (requested: number, resumed_from: number): string =>
  frame('stream.reset', { reason: 'cursor_too_old', requested, resumed_from })

/**
 * Returns the frame that reports that the requested cursor is after the end of the journal. Its id
 * is the position from which the stream continues.
 */
export const restartFrame = (requested: number, after: number): string =>
  frame('stream.reset', { reason: 'cursor_too_new', requested, resumed_from: after + 1 }, after)

/**
 * Opens a stream of events on an exchange.
 * @param comment comment line that is sent first, and then every `settings.keepalive` milliseconds.
 * @param onBeat called at every keepalive.
 */
export function openStream(
  world: World,
  exchange: Exchange,
  comment: string,
  onBeat: () => void,
): Sink {
  const beat = `${comment}\n\n`
  // The connection of a stream is not reused, so that the client can reconnect to another gateway
  // if the stream ends because its gateway stops.
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
