/**
 * The separate NATS connection of a view's thread. In a process without shards, the thread reads
 * the journal and answers queries over this connection, so that the process's main thread neither
 * receives the messages nor copies them.
 */
import type { Log } from '../../gateway/ports.ts'
import { decodeEnvelope } from '../host/memory/codec.ts'
import { createBlobs } from '../nats/blobs.ts'
import { createBus } from '../nats/bus.ts'
import { createJournal } from '../nats/journal/journal.ts'
import type { Access } from '../nats/server/access.ts'
import { connectNats, type Nats } from '../nats/server/connect.ts'
import { serveQueries } from './pending-queries.ts'
import type { ServedView, ViewPorts } from './view.ts'

/** The parameters of a connection. The parameters of threads are copied, so these are plain data. */
export interface ViewConnectionTerms {
  /** Id of the node. */
  readonly node: string
  readonly access: Access
  /** The connection's name in the server's list of connections. */
  readonly name: string
  /** The roles of the process, as in `ConnectOptions`. */
  readonly role: string
}
export interface ViewConnection {
  /** As `permitted` of `Nats`. */
  readonly permitted: Nats['permitted']
  /** The ports of the view that use the connection. */
  readonly ports: Pick<ViewPorts, 'follow' | 'position' | 'decode'>
  /**
   * Starts answering the queries of other processes. The returned function stops this and resolves
   * when all queries in progress have been answered.
   */
  serve(view: Pick<ServedView, 'ask'>): () => Promise<void>
  close(): Promise<void>
}

/**
 * Connects the view of a partition.
 * @throws StartFault as `connectNats` does.
 */
export async function openViewConnection(
  terms: ViewConnectionTerms,
  partition: number,
  log: Log,
): Promise<ViewConnection> {
  const nats = await connectNats({ ...terms, log })
  const journal = createJournal(nats)
  const blobs = createBlobs(nats)
  return {
    permitted: nats.permitted,
    ports: {
      // The thread has no other work that could wait for the end of a turn.
      follow: (from, on) => journal.follow(partition, from, on, 'per turn'),
      position: () => journal.position(partition),
      decode: (data) => decodeEnvelope(data, blobs, false),
    },
    serve: (view) => serveQueries(createBus(nats), partition, view, terms.node),
    close: () => nats.close(),
  }
}
