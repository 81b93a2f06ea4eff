/**
 * Follows a stream indefinitely. A stalled consumer looks the same as a stream without new
 * messages, so the follower regularly compares its position with the stream's last sequence. If
 * messages do not arrive, it restarts the read after the last received message.
 *
 * Invariants:
 * F1. Messages are passed to the handler in order, beginning with the sequence `from`. A message is
 *     not passed again once its batch has succeeded.
 * F2. The handler processes one batch at a time. Meanwhile, up to about `AHEAD` messages are
 *     buffered.
 * F3. Failures are retried with exponential backoff. After failed reads, the backoff has jitter, so
 *     that many followers do not resume at the same moment.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { FollowBatches, Stored } from '../host/ports.ts'
import { DamagedEnvelope, openEnvelope } from './envelope.ts'
import { errorText } from './failures.ts'
import { type Pulling, pull } from './journal/pull.ts'
import type { Nats } from './server/connect.ts'

/** Approximate maximum number of received messages that wait for the handler. */
const AHEAD = 512
/** Milliseconds between two checks of the stream's last sequence. */
const CHECK_EVERY_MS = 3000
/** Maximum milliseconds between two attempts after failures. */
const MAX_PAUSE_MS = 10_000

/** Creates a signal that one task waits for and another task sends. */
function bell() {
  let ring = () => {}
  return { rung: () => new Promise<void>((resolve) => void (ring = resolve)), ring: () => ring() }
}

/**
 * Passes the messages of a stream, beginning with the sequence `from`, to the handler `on`. The
 * returned function stops the follower and resolves when the last batch is done.
 */
export function follow(
  nats: Nats,
  stream: string,
  from: number,
  on: (batch: readonly Stored[]) => Promise<void> | void,
  batches: FollowBatches = 'at once',
): () => Promise<void> {
  const ending = new AbortController()
  const stopped = () => ending.signal.aborted
  const pause = (ms: number) => sleep(ms, undefined, { signal: ending.signal }).catch(() => {})
  const arrival = bell()
  const room = bell()
  let waiting: Stored[] = []
  let received = from - 1
  let current: Pulling | undefined

  /** Reads until the read fails or is closed. Returns whether any message arrived. */
  const readOnce = async (): Promise<boolean> => {
    const before = received
    try {
      current = await pull(nats, stream, received + 1)
      for await (const message of current.messages) {
        if (stopped()) break
        if (!message) continue
        waiting.push(openEnvelope(stream, message.seq, message.data, message.headers))
        received = message.seq
        arrival.ring()
        while (waiting.length >= AHEAD && !stopped()) await room.rung()
      }
    } catch (error) {
      if (error instanceof DamagedEnvelope)
        nats.log.error(
          { event: 'journal_read_stopped', stream, error },
          'journal damaged; reading stopped',
        )
      else if (!stopped())
        nats.log.warn(
          { event: 'journal_read_interrupted', stream, after: received, reason: errorText(error) },
          'journal read interrupted; resuming',
        )
    } finally {
      current?.close()
      current = undefined
    }
    return received > before
  }
  const reading = async () => {
    for (let failures = 0; !stopped(); ) {
      failures = (await readOnce()) ? 0 : failures + 1
      await pause(Math.min(50 * 2 ** failures, MAX_PAUSE_MS) * (0.5 + Math.random() / 2))
    }
  }
  const handing = async () => {
    for (let failures = 0; !stopped(); ) {
      if (waiting.length === 0) {
        await arrival.rung()
        // The acknowledgement of an append often arrives together with the appended message. If the
        // commit has jobs, they are sent to workers before the message is passed on.
        await (batches === 'per turn' ? nextTurn() : nats.turnEnd.responses())
        continue
      }
      const batch = waiting
      waiting = []
      try {
        await on(batch)
        failures = 0
      } catch (error) {
        waiting = [...batch, ...waiting]
        nats.log.error(
          { event: 'journal_batch_failed', stream, from: batch[0]?.sequence, error },
          'journal batch not applied; retrying',
        )
        await pause(Math.min(100 * 2 ** failures++, MAX_PAUSE_MS))
      }
      room.ring()
    }
  }
  const looking = async () => {
    for (let before = received; !stopped(); ) {
      const at = received
      await pause(CHECK_EVERY_MS)
      const { first_seq, last_seq } = await nats.manager.streams.info(stream).then(
        ({ state }) => state,
        () => ({ first_seq: 0, last_seq: 0 }),
      )
      // The delivery has stalled if the stream has more messages, but none has arrived since the
      // check before last. If the buffer is not full, the handler is not the cause.
      const silent = received === before && last_seq > received && first_seq <= last_seq
      if (silent && current && waiting.length < AHEAD && !stopped()) {
        nats.log.warn(
          { event: 'journal_delivery_stalled', stream, at, last_seq },
          'journal delivery stalled; restarting the read',
        )
        current.close()
      }
      before = at
    }
  }
  // Messages in transit are lost when the connection breaks, but the server counts them as
  // delivered. The read is therefore restarted after a reconnection.
  const forget = nats.onReconnect(() => current?.close())
  const running = Promise.all([reading(), handing(), looking()])
  return async () => {
    forget()
    ending.abort()
    current?.close()
    arrival.ring()
    room.ring()
    await running
  }
}
