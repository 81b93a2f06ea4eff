/** Reads a part of a shard's journal, with repeats where reading was interrupted. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stored } from '../../host/ports.ts'
import { DamagedEnvelope, openEnvelope } from '../envelope.ts'
import { errorText } from '../failures.ts'
import type { Nats } from '../server/connect.ts'
import { type Pulling, pull } from './pull.ts'

/**
 * Maximum number of messages in the first fetch of a read. It is large, because a new owner of a
 * shard waits for the read, and every further fetch costs a request. With full envelopes of 512
 * KiB, this is 16 MiB.
 */
const FIRST_BATCH = 32
/** Number of consecutive attempts without a message after which a read fails. */
const MAX_ATTEMPTS = 6
/** Milliseconds without a message after which an attempt ends. */
const IDLE_MS = 2000

/** The subject of a shard in the stream of its partition. */
interface ShardSubject {
  readonly stream: string
  readonly subject: string
  readonly shard: number
}

/**
 * Yields the envelopes of a shard with a sequence from `from` to `end`, in order.
 * @param findEnd returns `end`, at the beginning of the read.
 */
export async function* readEnvelopes(
  nats: Nats,
  { stream, subject, shard }: ShardSubject,
  from: number,
  findEnd: () => Promise<number>,
): AsyncGenerator<Stored, void> {
  const end = await findEnd()
  let next = from
  for (let failures = 0; next <= end; ) {
    const before = next
    let reason: unknown = 'no entries are delivered'
    let source: Pulling | undefined
    try {
      source = await pull(nats, stream, next, {
        subject,
        idle: IDLE_MS,
        first: Math.max(1, Math.min(end - next + 1, FIRST_BATCH)),
      })
      for await (const message of source.messages) {
        if (!message) break
        yield openEnvelope(stream, message.seq, message.data, message.headers)
        next = message.seq + 1
        if (next > end) return
      }
    } catch (error) {
      if (error instanceof DamagedEnvelope) throw error
      reason = error
    } finally {
      source?.close()
    }
    failures = next > before ? 0 : failures + 1
    // A stopping node closes its connection. Further attempts to read would then be useless.
    if (failures >= MAX_ATTEMPTS || nats.connection.isClosed())
      throw new Error(
        `shard ${shard} of ${stream} cannot be read from ${next} to ${end}: ${errorText(reason)}`,
      )
    if (failures > 0) await sleep(100 * 2 ** failures)
  }
}
