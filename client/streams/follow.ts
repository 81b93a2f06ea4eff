/**
 * Follows several sequences over one connection, with reconnection. Each subscription resumes from
 * its own cursor, so a reconnect to any gateway neither loses nor repeats frames.
 */
import type { FieldError } from '../../protocol/errors.ts'
import type { StreamSubscription } from '../../protocol/streams/rows.ts'
import type { Client } from '../client.ts'
import { BatonError } from '../errors.ts'
import { readStream, STREAMS_PATH, type StreamMessage, streamRequest } from './read.ts'
import { type ReconnectOptions, reconnecting } from './reconnect.ts'

export type { StreamSubscription } from '../../protocol/streams/rows.ts'
export type { StreamMessage } from './read.ts'

export type FollowStreamsOptions = ReconnectOptions

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
  options: FollowStreamsOptions = {},
): AsyncGenerator<StreamMessage> {
  const open = new Map(
    subscriptions.map((one) => [
      one.id,
      one.topic === 'changes' ? one : { project: transport.project, ...one },
    ]),
  )
  if (open.size < subscriptions.length) throw duplicate()
  if (open.size === 0) return
  yield* reconnecting<StreamMessage>(
    transport,
    {
      request: (signal) => ({
        path: STREAMS_PATH,
        init: streamRequest([...open.values()], transport.headers, signal),
      }),
      async *read(body, { alive, received, retry }) {
        for await (const frames of readStream(body, alive, retry))
          for (const frame of frames) {
            received()
            const { subscription, event, cursor } = frame
            const before = open.get(subscription)
            if (before && cursor !== undefined) open.set(subscription, { ...before, after: cursor })
            if (event === 'subscription.refused' || event === 'subscription.ended')
              open.delete(subscription)
            yield frame
            if (open.size === 0) return true
          }
        return false
      },
    },
    options,
  )
}
const duplicate = (): BatonError => {
  const fields: FieldError[] = [{ field: 'subscriptions', message: 'have equal ids' }]
  return new BatonError(400, 'bad_request', 'Two subscriptions have the same id.', { fields })
}
