/**
 * The program of a thread that serves one view, so that SQLite blocks no other work. Either the
 * journal and values of the object store come from the thread that started it (`view-worker.ts`),
 * or this thread has a connection to NATS (`view-connection.ts`).
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { EmbeddingAnswer } from '../../protocol/tables/semantic.ts'
import { startLogs } from '../../views/files/logs.ts'
import type { Message } from '../../views/view.ts'
import { decodeEnvelope } from '../host/memory/codec.ts'
import { createThreadLog } from './thread-log.ts'
import { createThreadRpc } from './thread-rpc.ts'
import { type Question, serveView, type ViewPorts } from './view.ts'
import type { ViewConnection } from './view-connection.ts'
import type { ThreadTerms } from './view-worker.ts'

const port = parentPort
if (!port) throw new Error('view-thread.ts is the program of a thread')
const terms = workerData as ThreadTerms
/** The number of the current `follow` call. Batches of earlier calls are ignored. */
let following = 0
/** Handles the batches of the current `follow` call. */
let take: (batch: readonly Message[]) => Promise<void> | void = () => {}
const { call } = createThreadRpc(port, {
  ask: (question: Question) => view.then(({ ask }) => ask(question)),
  position: () => view.then(({ position }) => position()),
  batch: ({ of, messages }: { of: number; messages: readonly Message[] }) =>
    of === following ? take(messages) : undefined,
  stop: async () => {
    const { stop, stopQueries } = await view
    await stopQueries?.()
    await stop()
    await logs.stop()
    await (await connection)?.close()
  },
})
/** Calls a function of the thread that started this one, and ignores its result and any failure. */
const say = (name: string, input: unknown): void => void call(name, input).catch(() => {})
const log = createThreadLog((entry) => say('log', entry), { connection: terms.connection?.name })
const blobs = { get: async (name: string) => (await call('blob', name)) as Uint8Array | undefined }
const ports: ViewPorts = {
  follow: (from, on) => {
    take = on
    say('follow', { of: ++following, from })
    return () => call('unfollow') as Promise<void>
  },
  position: async () => (await call('position')) as { first: number; last: number },
  decode: (data) => decodeEnvelope(data, blobs, false),
  lag: (messages) => say('lag', messages),
  alarm: ({ name, message, stack }) => say('alarm', { name, message, stack }),
  embed: async (texts) => (await call('embed', texts)) as EmbeddingAnswer,
  distances: (engine) => say('distances', engine),
}
const logs = startLogs(({ name, message, stack }) => say('warn', { name, message, stack }))
const connection = terms.connection && connect(terms.connection)
const view = start().catch((error: unknown) => {
  // An uncaught error ends the thread, and the calls in progress fail with `ThreadGone`.
  setImmediate(() => {
    throw error
  })
  return new Promise<never>(() => {})
})

async function connect(to: NonNullable<ThreadTerms['connection']>): Promise<ViewConnection> {
  // Threads without a connection do not load the NATS client.
  const { openViewConnection } = await import('./view-connection.ts')
  return openViewConnection(to, to.partition, log)
}
async function start() {
  const opened = await connection
  const starting = serveView(terms, { ...ports, ...opened?.ports }, logs)
  const view = await (opened?.permitted(starting) ?? starting)
  return { ...view, stopQueries: opened?.serve(view) }
}
