/**
 * Follows several sequences over one connection, with reconnection. Each subscription resumes from
 * its own cursor, so a reconnect to any gateway neither loses nor repeats frames.
 */
import type { FieldError } from '../../protocol/errors.ts'
import type { StreamSubscription } from '../../protocol/streams/rows.ts'
import type { Client } from '../client.ts'
import { BatonError, reasonOf, requireEventStream } from '../errors.ts'
import { reasonToRepeat } from '../transport.ts'
import { endedBySignal, untilAborted, watchdog } from '../watchdog.ts'
import { readStream, STREAMS_PATH, type StreamMessage, streamRequest } from './read.ts'

export type { StreamSubscription } from '../../protocol/streams/rows.ts'
export type { StreamMessage } from './read.ts'

export interface FollowStreamsOptions {
  readonly signal?: AbortSignal
  /** Called after every interruption, before the next attempt. */
  readonly onReconnect?: (reason: string) => void
  /** Milliseconds without received data until a connection is abandoned; 45,000 by default. */
  readonly silence?: number
}

/**
 * Follows subscriptions until all of them have been refused or have ended, or `signal` aborts.
 * Refusals and ends are frames (`subscription.refused`, `subscription.ended`). After a
 * reconnection, a subscription to a session receives the records of the session again, as
 * `client/transcript/fold.ts` expects. To change the set of subscriptions, start a new iteration
 * with the cursors received so far, and then end the old iteration.
 * @param subscriptions a subscription without `project` belongs to the client's project, except for
 * the topic `changes`.
 * @throws BatonError if the service refuses the whole request (with a 4xx status other than 429),
 * or if the response is not from a Baton service.
 */
export async function* followStreams(
  { transport }: Pick<Client, 'transport'>,
  subscriptions: readonly StreamSubscription[],
  { signal, onReconnect, silence = 45_000 }: FollowStreamsOptions = {},
): AsyncGenerator<StreamMessage> {
  const open = new Map(
    subscriptions.map((one) => [
      one.id,
      one.topic === 'changes' ? one : { project: transport.project, ...one },
    ]),
  )
  if (open.size < subscriptions.length) throw duplicate()
  for (let failures = 0; open.size > 0 && !signal?.aborted; failures++) {
    const { url } = transport
    const watch = watchdog(silence, signal)
    let reason = 'the server ended the stream'
    let pause: number | undefined
    let retryAfter: number | undefined
    try {
      const answer = await endedBySignal(transport.fetch)(
        `${url}${STREAMS_PATH}`,
        streamRequest([...open.values()], transport.headers, watch.signal),
      )
      if (!answer.ok) {
        ;({ reason, retryAfter } = await reasonToRepeat(transport, url, answer))
      } else if (answer.body) {
        requireEventStream(url, answer)
        for await (const frames of readStream(answer.body, watch.alive, (ms) => (pause = ms)))
          for (const frame of frames) {
            failures = -1
            const { subscription, event, cursor } = frame
            const before = open.get(subscription)
            if (before && cursor !== undefined) open.set(subscription, { ...before, after: cursor })
            if (event === 'subscription.refused' || event === 'subscription.ended')
              open.delete(subscription)
            yield frame
          }
      }
    } catch (error) {
      if (signal?.aborted) return
      if (error instanceof BatonError) throw error
      reason = watch.silent() ? `no data received for ${silence / 1000} s` : reasonOf(error)
      transport.next(url)
    } finally {
      watch.stop()
    }
    if (open.size === 0 || signal?.aborted) return
    onReconnect?.(reason)
    const ms = pause ?? Math.min(2000, 50 * 2 ** Math.max(0, failures))
    await untilAborted(transport.pause(ms, retryAfter), signal)
  }
}
const duplicate = (): BatonError => {
  const fields: FieldError[] = [{ field: 'subscriptions', message: 'have equal ids' }]
  return new BatonError(400, 'bad_request', 'Two subscriptions have the same id.', { fields })
}
