/**
 * Converts frames of a single stream to frames of the multiplexed stream. The JSON of the data is
 * copied as text, because parsing it would cost more than the rest of the conversion.
 */
import type { StreamSubscription } from '../../../protocol/streams/rows.ts'

/** Returns a frame of the multiplexed stream. `subscription`, `data` and `cursor` are JSON. */
const written = (subscription: string, event: string, data: string, cursor?: string): string =>
  `data: {"subscription":${subscription},"event":${JSON.stringify(event)}` +
  `${cursor === undefined ? '' : `,"cursor":${cursor}`},"data":${data}}\n\n`

export type SubscriptionEvent =
  | 'subscription.started'
  | 'subscription.refused'
  | 'subscription.ended'
/** Returns a frame about a subscription itself. */
export const subscriptionFrame = (
  { id }: Pick<StreamSubscription, 'id'>,
  event: SubscriptionEvent,
  data: object,
  cursor?: number | string,
): string =>
  written(
    JSON.stringify(id),
    event,
    JSON.stringify(data),
    cursor === undefined ? undefined : JSON.stringify(cursor),
  )

/**
 * Matches a frame of a single stream. Comments, `retry` and ids without an event are not frames.
 */
const FRAME = /^(?:id: ([^\n]*)\n)?event: ([^\n]*)\ndata: ([^\n]*)$/

/**
 * Creates the converter of a subscription. It converts a chunk of whole frames.
 * @param skipped the name of an event that is omitted.
 * @param at called with the cursor of each frame that has one.
 */
export function createRelabeler(
  { id, topic }: Pick<StreamSubscription, 'id' | 'topic'>,
  skipped: string,
  at: (cursor: string) => void,
): (chunk: string | Uint8Array) => string {
  const subscription = JSON.stringify(id)
  return (chunk) => {
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
    let frames = ''
    for (const part of text.split('\n\n')) {
      const [, cursor, event = '', data = ''] = FRAME.exec(part) ?? []
      if (event === '' || event === skipped) continue
      if (cursor !== undefined) at(cursor)
      const json = cursor === undefined || topic !== 'session' ? cursor : JSON.stringify(cursor)
      frames += written(subscription, event, data, json)
    }
    return frames
  }
}
