/** The view role: one SQLite file per partition, fed by the journal and queried over the bus. */
import { join } from 'node:path'
import type { Log } from '../../gateway/ports.ts'
import type { Envelope } from '../../protocol/entry.ts'
import { type Logs, startLogs } from '../../views/files/logs.ts'
import type { ViewJournal } from '../../views/follow.ts'
import type { DistanceEngine } from '../../views/tables/tables/vectors/distance.ts'
import { decodeEnvelope, NewerRelease } from '../host/memory/codec.ts'
import type { Recent } from '../host/memory/recent.ts'
import type { Blobs, Bus, Clock, Journal } from '../host/ports.ts'
import type { Metrics } from '../observe/metrics.ts'
import { privateFiles } from '../storage/private.ts'
import type { Embedder, EmbedRows } from './embed.ts'
import { serveQueries } from './pending-queries.ts'
import { type ServedView, serveView, type ViewTerms } from './view.ts'
import type { ViewConnectionTerms } from './view-connection.ts'
import { serveViewInThread } from './view-worker.ts'

interface ViewParts {
  /** Id of the node. */
  readonly node: string
  readonly data: string
  /** Id of the organization. */
  readonly organization: string
  readonly partitions: number
  readonly journal: Journal
  /**
   * Returns the last sequence of a partition, if this process is its only writer; otherwise
   * undefined.
   */
  readonly end: (partition: number) => number | undefined
  /**
   * The newest envelopes of this process. If absent, each view runs in a separate thread, which
   * cannot share the envelopes.
   */
  readonly recent?: Recent<Envelope>
  /** The JSON of the newest envelopes of this process, for views in separate threads. */
  readonly texts: Recent<string>
  /** The parameters of the connections of threads; absent if threads have no connections. */
  readonly connection?: ViewConnectionTerms
  readonly blobs: Blobs
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Milliseconds for which a worker that is no longer connected is still listed. */
  readonly stale: number
  /** Requests embeddings of rows; absent if no embedding model is configured. */
  readonly embedder?: Embedder
  /** Called when this release cannot read the journal. */
  doomed(error: Error): void
}

/**
 * Starts the views of every partition. Returns a function that stops them and closes their files.
 * @throws StartFault when a thread with a connection lacks a permission or cannot connect.
 */
export async function startViews(parts: ViewParts): Promise<() => Promise<void>> {
  const { node, data, partitions, journal, recent, connection, bus, log, metrics } = parts
  privateFiles(join(data, 'views'))
  const warn = (error: Error) =>
    log.warn(
      { event: 'view_wal_maintenance_failed', err: error },
      'WAL maintenance of views failed; SQLite takes over',
    )
  const logs = recent && startLogs(warn)
  const started = await Promise.allSettled(
    Array.from({ length: partitions }, async (_, partition) => {
      const view = await served(parts, partition, warn, logs)
      metrics.onLook(async () =>
        metrics.viewLag(
          partition,
          Math.max(0, (await journal.position(partition)).last - (await view.position())),
        ),
      )
      // A thread with a connection answers the queries of other processes itself.
      const within = connection && 'process'
      const stopQueries = serveQueries(bus, partition, view, node, within)
      return async () => {
        await stopQueries()
        await view.stop()
      }
    }),
  )
  const stop = async () => {
    await Promise.all(started.map((one) => one.status === 'fulfilled' && one.value()))
    await logs?.stop()
  }
  const failed = started.find((one) => one.status === 'rejected')
  if (!failed) return stop
  await stop()
  throw failed.reason
}

async function served(
  {
    data,
    organization,
    stale,
    journal,
    end,
    recent,
    texts,
    connection,
    blobs,
    clock,
    log,
    metrics,
    embedder,
    doomed,
  }: ViewParts,
  partition: number,
  warn: (error: Error) => void,
  logs: Logs | undefined,
): Promise<ServedView> {
  const terms: ViewTerms = {
    file: join(data, 'views', `${partition}.sqlite`),
    organization,
    stale,
    ...(embedder && {
      embedding: { model: embedder.model, max_characters: embedder.max_characters },
    }),
  }
  const ports = {
    position: () => journal.position(partition),
    end: () => end(partition),
    later: clock.later,
    lag: (messages: number) => metrics.viewLag(partition, messages),
    embed: embedder?.rows ?? notConfigured,
    distances: ({ name, fault }: DistanceEngine) => {
      if (fault === undefined)
        log.info({ event: 'vector_search', partition, engine: name }, 'vectors are compared')
      else
        log.warn(
          { event: 'vector_search_slow', partition, engine: name, reason: fault },
          'sqlite-vec cannot be loaded; vectors are compared in JavaScript, which is slower',
        )
    },
    alarm: (error: Error) => {
      metrics.viewAlarm(partition)
      if (error instanceof NewerRelease) doomed(error)
      log.error(
        { event: 'view_follow_failed', err: error, partition },
        'view cannot follow the journal',
      )
    },
  }
  /** Follows the journal, and takes from a cache those envelopes that this process wrote. */
  const follow =
    (cache: Recent<Envelope | string> | undefined): ViewJournal['follow'] =>
    (from, on) =>
      journal.follow(partition, from, (batch) =>
        on(
          batch.map((stored) => ({
            ...stored,
            data: cache?.take(stored.message_id) ?? stored.data,
          })),
        ),
      )
  if (!recent || !logs) {
    const view = serveViewInThread(
      { ...terms, ...(connection && { connection: { ...connection, partition } }) },
      {
        ...ports,
        log,
        warn,
        follow: follow(texts),
        blob: (name) => blobs.get(name),
      },
    )
    if (connection)
      await view.begun().catch(async (error) => {
        await view.stop()
        throw error
      })
    return view
  }
  return serveView(
    terms,
    {
      ...ports,
      follow: follow(recent),
      decode: (bytes) => decodeEnvelope(bytes, blobs, false),
      now: clock.now,
    },
    logs,
  )
}
const notConfigured: EmbedRows = async () => ({
  failed: 'model_unavailable',
  message: 'No embedding model is configured.',
})
