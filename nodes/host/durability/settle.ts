/**
 * Repeats an append until its outcome is known. After a timeout the outcome is unknown. The last
 * message of the subject, read from the stream's leader, then shows whether the envelope was
 * stored. A repeat with the same message id and the same expected sequence cannot store the
 * envelope twice.
 */
import type { ShardContext } from '../shard-context.ts'
import type { WriteGate } from './write-gate.ts'

/**
 * Number of appends with an unknown outcome after which the storage is considered to accept no
 * writes, although its leader answers queries.
 */
const UNANSWERED = 3

/**
 * Returns the sequence of the appended envelope; `conflict` when another owner wrote first;
 * `refused` when the envelope is not stored because the storage accepts no writes or the gate has
 * closed. Retries while the journal cannot be reached.
 */
export async function settleAppend(
  context: ShardContext,
  gate: Pick<WriteGate, 'closed'>,
  data: Uint8Array,
  id: string,
): Promise<number | 'conflict' | 'refused'> {
  const { deps, partition, shard, name } = context
  const { journal, clock, log } = deps
  const expected = context.position.sequence
  let unanswered = 0
  for (let attempt = 0; ; attempt++) {
    const outcome = await journal.append(partition, shard, data, expected, id)
    if (typeof outcome === 'object') return outcome.sequence
    try {
      const last = await journal.last(partition, shard)
      if (last?.message_id === id) return last.sequence
      if ((last?.sequence ?? 0) !== expected) return 'conflict'
      if (outcome === 'unknown') unanswered++
      if (outcome === 'refused' || unanswered >= UNANSWERED || gate.closed()) return 'refused'
    } catch (error) {
      log.debug(
        { event: 'journal_query_failed', err: error, shard: name },
        'journal query failed; retrying',
      )
    }
    if (attempt === 0)
      log.warn(
        { event: 'append_unconfirmed', shard: name, outcome },
        'append not confirmed; querying the journal',
      )
    await new Promise<void>((again) =>
      clock.later(Math.min(1000, 20 * 2 ** Math.min(attempt, 6)), again),
    )
  }
}
