/**
 * The multiplexed stream (`stream.follow`): many sequences over one connection. The gateway stores
 * nothing about it. A client resumes each subscription from its own cursor, at any gateway.
 *
 * Invariants:
 * X1. A frame is written whole, so frames of different subscriptions never mix.
 * X2. All subscriptions share the connection's limit of unsent data. If the client does not read,
 *     each subscription continues from the view once the connection has drained.
 * X3. The connection ends when its caller is no longer admitted, when the gateway stops, or when
 *     all subscriptions have ended.
 */
import type { Refusal } from '../../../protocol/errors.ts'
import type { StreamSubscription } from '../../../protocol/streams/rows.ts'
import type { Call, Edge } from '../../call.ts'
import { guardOf } from '../../guard.ts'
import type { Exchange, Sink } from '../../http/respond.ts'
import { openEnvironmentLogs } from '../../logs/environment.ts'
import type { FollowedSessions } from '../../sessions/transcript/followed.ts'
import { concurrently } from '../../timing.ts'
import { farewellFrame } from '../followers.ts'
import { openStream } from '../sse.ts'
import { openChanges } from './changes.ts'
import { OpenSubscription } from './subscription.ts'

/** Maximum number of sequences that are opened concurrently for one connection. */
const MAX_CONCURRENT = 8

export interface Multiplex {
  /** Opens the stream of an admitted call. */
  run(call: Call, exchange: Exchange): undefined
  /** Ends all streams, so that their clients reconnect. */
  stop(): void
}

/** Creates the handler of multiplexed streams. */
export function openMultiplex(edge: Edge, sessions: FollowedSessions): Multiplex {
  const sequences = {
    edge,
    sessions,
    changes: openChanges(edge),
    environmentLogs: openEnvironmentLogs(edge),
  }
  const open = new Set<Sink>()
  return {
    run(call, exchange) {
      const drains = new Set<() => void>()
      const all = (call.body['subscriptions'] as readonly StreamSubscription[]).map(
        (subscription) =>
          new OpenSubscription(sequences, call, subscription, {
            sink: {
              write: (chunk) => sink.write(chunk),
              get full() {
                return sink.full
              },
              get closed() {
                return sink.closed
              },
            },
            onDrain: (run) => {
              drains.add(run)
              return () => void drains.delete(run)
            },
          }),
      )
      const look = () => {
        void guard.look()
        for (const one of all) one.look()
      }
      const end = (refused: Refusal) => {
        for (const one of all) one.lose(refused)
        sink.end()
      }
      const guard = guardOf(edge, call, (refused) => end(refused))
      const sink: Sink = openStream(edge.world, exchange, ': keepalive', () => look())
      sink.onDrain(() => {
        const [first, ...rest] = drains
        for (const run of [...drains]) run()
        // Rotates the order, so that another subscription writes first after the next drain.
        if (first && rest.length > 0 && drains.delete(first)) drains.add(first)
      })
      open.add(sink)
      sink.onClose(() => {
        open.delete(sink)
        guard.stop()
        for (const one of all) one.close()
      })
      let left = all.length
      void concurrently(
        MAX_CONCURRENT,
        all,
        (one) =>
          new Promise<void>((attempted) => {
            void one.follow(attempted).finally(() => {
              attempted()
              if (--left === 0) sink.end()
            })
          }),
      )
      return undefined
    },
    stop() {
      for (const sink of [...open]) {
        sink.write(farewellFrame(edge.world))
        sink.end()
      }
    },
  }
}
