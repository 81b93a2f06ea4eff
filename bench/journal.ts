/** The journal of a data folder, beside the server that owns it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../gateway/ports.ts'
import { connectNats, type Nats } from '../nodes/nats/connect.ts'
import { createJournal } from '../nodes/nats/journal.ts'
import type { Entry } from '../protocol/entry.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
/** Shards that a server has unless it is told otherwise. */
export const SHARDS = 4

/** Connect to the NATS server that runs in a data folder. */
export const connectTo = (data: string): Promise<Nats> => {
  const port =
    /^port: (\d+)/m.exec(readFileSync(join(data, 'nats', 'nats.conf'), 'utf8'))?.[1] ?? ''
  return connectNats({ servers: [`nats://127.0.0.1:${port}`], name: 'bench', log: silent })
}
/** Everything that the journal holds, shard by shard. */
export async function journalOf(data: string): Promise<Entry[]> {
  const nats = await connectTo(data)
  const journal = createJournal(nats)
  const entries: Entry[] = []
  for (let shard = 0; shard < SHARDS; shard++) {
    for await (const stored of journal.read(0, shard, 1))
      entries.push(
        ...(JSON.parse(new TextDecoder().decode(stored.data)) as { entries: Entry[] }).entries,
      )
  }
  await nats.close()
  return entries
}
