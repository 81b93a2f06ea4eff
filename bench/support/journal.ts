/** Reads the journal of a data folder while a server is using the folder. */

import { join } from 'node:path'
import type { Log } from '../../gateway/ports.ts'
import { envelopeText, parseEnvelope } from '../../nodes/host/memory/codec.ts'
import { runningIn } from '../../nodes/nats/journal/claim.ts'
import { createJournal } from '../../nodes/nats/journal/journal.ts'
import { connectNats, type Nats } from '../../nodes/nats/server/connect.ts'
import type { Entry } from '../../protocol/entry.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
/** Default number of shards of a server. */
export const SHARDS = 4

/** Connects to the NATS server that runs in a data folder. */
export const connectTo = async (data: string): Promise<Nats> => {
  const access = runningIn(join(data, 'nats'))
  if (!access) throw new Error(`no NATS server runs in ${data}`)
  return connectNats({ access, name: 'bench', log: silent, role: 'bench' })
}
/** Returns all entries of the journal, shard by shard. */
export async function journalOf(data: string): Promise<Entry[]> {
  const nats = await connectTo(data)
  const journal = createJournal(nats)
  const entries: Entry[] = []
  for (let shard = 0; shard < SHARDS; shard++) {
    for await (const stored of journal.read(0, shard, 1))
      entries.push(...parseEnvelope(envelopeText(stored.data)).entries)
  }
  await nats.close()
  return entries
}
