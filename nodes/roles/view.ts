/**
 * One view with its follower and its file. It runs in the node's main thread or in a separate one.
 */
import type { Envelope } from '../../protocol/entry.ts'
import type { Logs } from '../../views/files/logs.ts'
import { ViewFollower, type ViewJournal } from '../../views/follow.ts'
import { VectorCache } from '../../views/tables/tables/vectors/cache.ts'
import type { DistanceEngine } from '../../views/tables/tables/vectors/distance.ts'
import { type IndexerTerms, VectorIndexer } from '../../views/tables/tables/vectors/indexer.ts'
import { View } from '../../views/view.ts'
import type { Clock } from '../host/ports.ts'
import { systemClock } from '../system.ts'
import type { EmbedRows } from './embed.ts'

/** A running view. */
export interface ServedView {
  /** Answers a query, as `ViewFollower.ask` does. */
  ask(question: Question): Promise<unknown>
  /** Returns the sequence of the last applied journal message. */
  position(): Promise<number>
  /** Stops following and closes the file. */
  stop(): Promise<void>
}
/**
 * A query as it is sent over the bus and to threads. Repeated requests for one query have the same
 * `id`. Requests of earlier releases have none.
 */
export interface Question {
  readonly id?: string
  readonly name: string
  readonly project: string
  readonly input: unknown
  readonly fresh?: number
  readonly within?: number
}
/** Start parameters of a view. */
export interface ViewTerms {
  readonly file: string
  /** Id of the organization. */
  readonly organization: string
  /** Milliseconds for which a worker that is no longer connected is still listed. */
  readonly stale: number
  /** The embedding model; absent if none is configured. */
  readonly embedding?: IndexerTerms
}
/** The ports of a view. */
export interface ViewPorts extends ViewJournal {
  decode(data: Uint8Array | string): Promise<Envelope>
  /** Clock and timers. The defaults are those of the system. */
  now?(): number
  later?(ms: number, run: () => void): () => void
  /** Reports how many messages the view is behind. */
  lag(messages: number): void
  alarm(error: Error): void
  /** Requests embeddings of rows from the executors. */
  embed: EmbedRows
  /** Reports the engine that computes the distances of vectors. */
  distances(engine: DistanceEngine): void
}

/**
 * Opens a view and starts following its journal.
 * @param logs notified of the view's commits; must outlive the view.
 */
export async function serveView(
  { file, organization, stale, embedding }: ViewTerms,
  ports: ViewPorts,
  logs: Pick<Logs, 'saved'>,
): Promise<ServedView> {
  const { now = systemClock.now, later = systemClock.later } = ports
  const wake = () => indexer?.wake()
  const view = View.open(file, {
    now,
    stale,
    organization: () => organization,
    saved: () => logs.saved(file),
  })
  const follower = new ViewFollower(view, ports, {
    later,
    hooks: {
      lag: (messages) => ports.lag(messages),
      alarm: (error) => ports.alarm(error as Error),
      applied: wake,
      answered: wake,
    },
  })
  const indexer = embedding && createIndexer(file, embedding, view, { ...ports, now, later })
  await follower.start()
  return {
    ask: ({ name, project, input, fresh, within }) =>
      follower.ask(name, project, input, fresh, within),
    position: async () => follower.position(),
    stop: async () => {
      await follower.stop()
      indexer?.stop()
      view.close()
    },
  }
}

/** Creates the indexer of a view, with a cache of vectors in a file next to that of the view. */
function createIndexer(
  file: string,
  terms: IndexerTerms,
  view: View,
  ports: ViewPorts & Pick<Clock, 'now' | 'later'>,
): VectorIndexer {
  ports.distances(view.distances())
  return new VectorIndexer(terms, {
    view,
    cache: VectorCache.open(file.replace(/\.sqlite$/, '.vectors.sqlite')),
    embed: ports.embed,
    now: ports.now,
    elapsed: systemClock.elapsed,
    later: ports.later,
    alarm: ports.alarm,
  })
}
