/**
 * A view in a separate thread, so that the reads and writes of SQLite do not delay decisions and
 * requests. This process passes the journal to the thread as it reads it, and sends queries to the
 * thread as messages. In a process without shards, the thread reads the journal and answers the
 * queries of other processes over a separate NATS connection (`view-connection.ts`).
 *
 * Invariants:
 * A1. The death of a thread loses nothing. The file of the view remains, and the next thread
 *     continues from the position in the file. Pending queries are answered with `viewBehind`.
 * A2. The answer to a query without a required freshness (`fresh`) covers the journal up to its end
 *     at the time of the query. If this process is certain of that end, it passes the end to the
 *     thread, which then need not look it up.
 */
import { Worker } from 'node:worker_threads'
import type { Log } from '../../gateway/ports.ts'
import { cursorOf } from '../../protocol/entry.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { DistanceEngine } from '../../views/tables/tables/vectors/distance.ts'
import type { Message } from '../../views/view.ts'
import { viewBehind } from '../../views/view.ts'
import { NewerRelease } from '../host/memory/codec.ts'
import { StartFault } from '../process/fault.ts'
import { threadProgram } from '../process/thread-program.ts'
import { type LogEntry, writeEntry } from './thread-log.ts'
import { createThreadRpc, ThreadGone, type ThreadRpc } from './thread-rpc.ts'
import type { ServedView, ViewPorts, ViewTerms } from './view.ts'
import type { ViewConnectionTerms } from './view-connection.ts'

/** Start parameters of a view in a thread. */
export interface ThreadTerms extends ViewTerms {
  /** If present, the thread connects to NATS itself. */
  readonly connection?: ViewConnectionTerms & { readonly partition: number }
}
/**
 * The functions that this process provides to the thread. A thread with a separate connection does
 * not call `follow`, `position` and `blob`.
 */
export interface ThreadPorts
  extends Pick<ViewPorts, 'position' | 'lag' | 'alarm' | 'embed' | 'distances'> {
  readonly log: Log
  follow(from: number, on: (batch: readonly Message[]) => Promise<void>): () => Promise<void> | void
  /** Returns the last sequence of the journal; undefined if this process is not certain of it. */
  end(): number | undefined
  blob(name: string): Promise<Uint8Array | undefined>
  later(ms: number, run: () => void): () => void
  /**
   * Called when an error has ended the thread that checkpoints the view's write-ahead log. SQLite
   * then checkpoints the log itself.
   */
  warn(error: Error): void
}
type Told = Pick<Error, 'name' | 'message' | 'stack'>

/** Milliseconds until a thread that died is restarted. */
const RESTART_DELAY_MS = 1000

const file = threadProgram(
  import.meta.filename,
  'views',
  new URL('./view-thread.ts', import.meta.url),
)

/** The errors that keep their class when they come from the thread, by name. */
const classes: Readonly<Record<string, new (message: string) => Error>> = {
  NewerRelease,
  StartFault,
}
const errorOf = ({ name, message, stack }: Told): Error =>
  Object.assign(new (classes[name] ?? Error)(message), { ...(stack !== undefined && { stack }) })
/**
 * Returns messages that can be transferred or copied. Bytes get a separate buffer, because the
 * messages of one packet share a buffer.
 */
const owned = (batch: readonly Message[]): Message[] =>
  batch.map((message) =>
    message.data instanceof Uint8Array
      ? { ...message, data: new Uint8Array(message.data) }
      : message,
  )

/** A view in a separate thread. */
interface ThreadView extends ServedView {
  /**
   * Resolves when the thread has started, or has ended with an error after which it may start
   * later.
   * @throws StartFault when the thread lacks a permission or cannot connect.
   */
  begun(): Promise<void>
}
/** Serves a view in a separate thread. */
export function serveViewInThread(terms: ThreadTerms, ports: ThreadPorts): ThreadView {
  let stopping = false
  let cancel = () => {}
  let thread: Worker
  let calls: ThreadRpc
  /** The error that ended the latest thread. */
  let last: Error | undefined
  const start = (): void => {
    let stopFollowing: () => Promise<void> | void = () => {}
    thread = new Worker(file, { workerData: terms })
    const { call, end } = (calls = createThreadRpc(thread, {
      follow: ({ of, from }: { of: number; from: number }) => {
        stopFollowing = ports.follow(from, async (batch) => {
          const messages = owned(batch)
          await call(
            'batch',
            { of, messages },
            messages.flatMap(({ data }) =>
              data instanceof Uint8Array ? (data.buffer as ArrayBuffer) : [],
            ),
          )
        })
      },
      unfollow: () => stopFollowing(),
      position: () => ports.position(),
      blob: (name: string) => ports.blob(name),
      lag: (messages: number) => ports.lag(messages),
      alarm: (error: Told) => ports.alarm(errorOf(error)),
      embed: (texts: readonly string[]) => ports.embed(texts),
      distances: (engine: DistanceEngine) => ports.distances(engine),
      warn: (error: Told) => ports.warn(errorOf(error)),
      log: (entry: LogEntry) => writeEntry(ports.log, entry),
    }))
    thread.on('error', (error) => {
      last = errorOf(error)
      ports.alarm(error)
    })
    thread.on('exit', () => {
      end('the thread of the view has ended')
      void stopFollowing()
      if (!stopping) cancel = ports.later(RESTART_DELAY_MS, start)
    })
  }
  start()
  return {
    begun: async () => {
      await calls.call('position').catch(() => {})
      if (last instanceof StartFault) throw last
    },
    ask: ({ fresh, ...question }) => {
      const end = fresh === undefined ? ports.end() : undefined
      const known = fresh ?? (end === undefined ? undefined : cursorOf(end, 0))
      return calls
        .call('ask', extended(question, known !== undefined && { fresh: known }))
        .catch((error: unknown) => {
          if (error instanceof ThreadGone) return viewBehind
          throw error
        })
    },
    position: async () => (await calls.call('position')) as number,
    stop: async () => {
      stopping = true
      cancel()
      await calls.call('stop').catch(() => {})
      await thread.terminate()
    },
  }
}
