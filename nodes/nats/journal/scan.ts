/** Reads a part of a journal only to check that it is readable, for `storage/verify.ts`. */
import { names } from '../../../protocol/subjects.ts'
import { DamagedEnvelope, openEnvelope } from '../envelope.ts'
import type { Nats } from '../server/connect.ts'
import { pull } from './pull.ts'

/** The result of a scan. `next` is the sequence at which the next scan can continue. */
export type Scan =
  | { readonly next: number; readonly outcome: 'sound' }
  /** The entry `next` was not delivered: it may be unreadable, or the servers may be busy. */
  | { readonly next: number; readonly outcome: 'silent' }
  | { readonly next: number; readonly outcome: 'damaged'; readonly reason: string }

/** Milliseconds without a delivery after which a scan ends. */
const IDLE_MS = 2000
/** Number of entries in the first fetch. */
const FIRST = 16

/**
 * Reads the entries `from` to `to` of a partition, which must all exist, and checks their sequences
 * and checksums.
 * @throws Error when the servers do not answer.
 */
export async function scanJournal(
  nats: Nats,
  partition: number,
  from: number,
  to: number,
): Promise<Scan> {
  const stream = nats.space.stream(names.journal(partition))
  const first = Math.min(FIRST, to - from + 1)
  const source = await pull(nats, stream, from, { idle: IDLE_MS, first })
  let next = from
  try {
    for await (const message of source.messages) {
      if (!message) return { next, outcome: 'silent' }
      if (message.seq > next) {
        const until = Math.min(message.seq - 1, to)
        const reason = `entries ${next} to ${until} of ${stream} cannot be read`
        return { next: until + 1, outcome: 'damaged', reason }
      }
      openEnvelope(stream, message.seq, message.data, message.headers)
      if (++next > to) break
    }
    return { next, outcome: next > to ? 'sound' : 'silent' }
  } catch (error) {
    if (!(error instanceof DamagedEnvelope)) throw error
    return { next: next + 1, outcome: 'damaged', reason: error.message }
  } finally {
    source.close()
  }
}
