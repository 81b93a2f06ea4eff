/**
 * The journal over JetStream: one stream per partition and one subject per shard. An append is a
 * compare-and-set on the subject's last sequence. Reads on which a decision depends go to the
 * stream's leader.
 */

import { names, subjects } from '../../../protocol/subjects.ts'
import type { Journal, Stored } from '../../host/ports.ts'
import { openEnvelope } from '../envelope.ts'
import { follow } from '../follow.ts'
import { createSuccession, wasLeader } from '../leader.ts'
import { type Nats, REQUEST_TIMEOUT_MS } from '../server/connect.ts'
import { type AppendOptions, createAppend } from './append.ts'
import { messageAt, newest } from './newest.ts'
import { readEnvelopes } from './read.ts'

/** Creates the journal over a connection. */
export function createJournal(nats: Nats, options: AppendOptions = {}): Journal {
  const { space } = nats
  const streamOf = (partition: number) => space.stream(names.journal(partition))
  const subjectOf = (partition: number, shard: number) =>
    space.subject(subjects.journal(partition, shard))
  const succession = createSuccession(() => performance.now())

  const last = async (partition: number, shard: number): Promise<Stored | undefined> => {
    const stream = streamOf(partition)
    const found = await newest(nats, stream, subjectOf(partition, shard), REQUEST_TIMEOUT_MS)
    return found && openEnvelope(stream, found.sequence, found.data, found.headers)
  }
  const at = async (partition: number, sequence: number): Promise<Stored | undefined> => {
    const stream = streamOf(partition)
    const found = await messageAt(nats, stream, sequence, REQUEST_TIMEOUT_MS)
    return found && openEnvelope(stream, found.sequence, found.data, found.headers)
  }
  const read: Journal['read'] = (partition, shard, from) =>
    readEnvelopes(
      nats,
      { stream: streamOf(partition), subject: subjectOf(partition, shard), shard },
      from,
      async () => (await last(partition, shard))?.sequence ?? 0,
    )

  return {
    append: createAppend(nats, last, options),
    last,
    at,
    read,
    position: async (partition) => {
      const asked = performance.now()
      const { state, cluster } = await nats.manager.streams.info(streamOf(partition))
      if (!wasLeader(cluster, performance.now() - asked) || !succession(partition, cluster))
        throw new Error(
          `the server that reported the end of ${streamOf(partition)} may no longer lead it`,
        )
      const { first_seq: first, last_seq: last, messages } = state
      return { first, last, missing: messages === 0 ? 0 : last - first + 1 - messages }
    },
    follow: (partition, from, on, batches) => follow(nats, streamOf(partition), from, on, batches),
  }
}
