/**
 * Stores log lines in their stream, and reads them with direct gets, which need no consumer.
 *
 * Invariants:
 * S1. A batch is sent once. If its outcome is unknown, it may be stored although `append` rejects.
 * S2. A read returns consecutive batches. Any replica may answer, so the newest batches may be
 *     missing for a moment.
 */
import type { LogPart, LogStore } from '../../../gateway/logs/ports.ts'
import { type LogBatch, type NumberedBatch, positionOf } from '../../../protocol/jobs/logs.ts'
import { names, subjects } from '../../../protocol/subjects.ts'
import type { Bus } from '../../host/ports.ts'
import { type Nats, REQUEST_TIMEOUT_MS, WRITE_TIMEOUT_MS } from '../server/connect.ts'
import { retryOperation } from '../server/retry-operation.ts'
import { directGet, type Message } from './direct-get.ts'
import { ensureLogs, type LogRetention } from './stream.ts'

/** Maximum number of batches of one read. */
const MAX_BATCHES = 128
/** Maximum total size of the batches of one read, in bytes. */
const MAX_BYTES = 1_048_576

/**
 * Makes sure that the stream exists, and creates the store.
 * @throws StartFault when the servers do not provide the stream in time.
 */
export async function openLogs(
  nats: Nats,
  bus: Pick<Bus, 'publish' | 'subscribe'>,
  retention: LogRetention,
  replicas: number,
): Promise<LogStore> {
  await retryOperation(nats, names.logs, () => ensureLogs(nats, retention, replicas))
  return createLogStore(nats, bus)
}

/** Creates the store. Its reads reject when the servers do not answer in time. */
function createLogStore(nats: Nats, bus: Pick<Bus, 'publish' | 'subscribe'>): LogStore {
  const stream = nats.space.stream(names.logs)

  /** Returns the first messages of a subject whose sequence is at least `from`. */
  const get = (subject: string, from: number, batch: number): Promise<Message[]> =>
    directGet(nats, { stream, subject, from, batch, bytes: MAX_BYTES, timeout: REQUEST_TIMEOUT_MS })
  const stored = ({ sequence, data }: Message): NumberedBatch => ({
    ...(JSON.parse(Buffer.from(data).toString()) as LogBatch),
    sequence,
  })
  const subjectOf = (project: string, target: string) =>
    nats.space.subject(subjects.logs(project, target))

  /** Returns the number of messages of a subject whose sequence is at least `seq`. */
  const countFrom = async (subject: string, seq: number): Promise<number> => {
    const [first] = await get(subject, seq, 1)
    return first ? first.pending + 1 : 0
  }
  /**
   * Finds the start of a read that ends before `end`, because a stream cannot be read backwards.
   * From the returned sequence (inclusive) to `end` (exclusive), the subject has `MAX_BATCHES / 2`
   * to `MAX_BATCHES` messages. Returns 1 if it has fewer. The search moves away from `end` until
   * there are enough messages, and then narrows the range.
   */
  const startBefore = async (subject: string, end: number, after: number): Promise<number> => {
    const countTo = async (seq: number) => (await countFrom(subject, seq)) - after
    let low = 1
    let high = end
    for (let distance = MAX_BATCHES; end - distance > 1; distance *= 4) {
      const count = await countTo(end - distance)
      if (count > MAX_BATCHES) {
        low = end - distance
        break
      }
      high = end - distance
      if (count >= MAX_BATCHES / 2) return high
    }
    if (low === 1 && (await countTo(1)) <= MAX_BATCHES) return 1
    // There are more than `MAX_BATCHES` messages between `low` and `end`, and fewer than half as
    // many between `high` and `end`.
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      const count = await countTo(middle)
      if (count > MAX_BATCHES) low = middle
      else if (count >= MAX_BATCHES / 2) return middle
      else high = middle
    }
    return high
  }

  return {
    append: async (project, target, batch) => {
      const data = Buffer.from(JSON.stringify(batch))
      const sequence = await nats.publish(
        subjectOf(project, target),
        data,
        undefined,
        WRITE_TIMEOUT_MS,
      )
      const position = positionOf(sequence, batch.lines.length - 1)
      bus.publish(subjects.logged(project, target), { position })
    },
    from: async (project, target, sequence) => {
      const found = await get(subjectOf(project, target), sequence, MAX_BATCHES)
      return { batches: found.map(stored), more: (found.at(-1)?.pending ?? 0) > 0 }
    },
    before: async (project, target, sequence): Promise<LogPart> => {
      const subject = subjectOf(project, target)
      const { state } = sequence === undefined ? await nats.manager.streams.info(stream) : {}
      const end = sequence ?? (state?.last_seq ?? 0) + 1
      if (end <= 1) return { batches: [], more: false }
      const after = await countFrom(subject, end)
      const start = await startBefore(subject, end, after)
      const batches: NumberedBatch[] = []
      for (let next = start; next < end; ) {
        const found = await get(subject, next, MAX_BATCHES)
        for (const message of found) if (message.sequence < end) batches.push(stored(message))
        const last = found.at(-1)
        if (!last || last.pending === 0 || last.pending < after) break
        next = last.sequence + 1
      }
      const more = start > 1 && (await countFrom(subject, 1)) - after > batches.length
      return { batches, more }
    },
    onStored: (project, target, on) =>
      bus.subscribe(subjects.logged(project, target), (message) => {
        on((message as { readonly position: number }).position)
      }),
    forget: async (project) => {
      const filter = nats.space.subject(subjects.logsOf(project))
      await nats.manager.streams.purge(stream, { filter })
    },
  }
}
