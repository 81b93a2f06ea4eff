/**
 * The program of a thread that serves one view, so that SQLite blocks no other work. It has no
 * connection to NATS: the journal and values of the object store come from the thread that started
 * it (`view-worker.ts`).
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { EmbeddingAnswer } from '../../protocol/tables/semantic.ts'
import { startLogs } from '../../views/files/logs.ts'
import type { Message } from '../../views/view.ts'
import { decode } from '../host/memory/codec.ts'
import { createThreadRpc } from './thread-rpc.ts'
import { type Question, serveView, type ViewPorts, type ViewTerms } from './view.ts'

const port = parentPort
if (!port) throw new Error('view-thread.ts is the program of a thread')
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
    await (await view).stop()
    await logs.stop()
  },
})
/** Calls a function of the thread that started this one, and ignores its result and any failure. */
const say = (name: string, input: unknown): void => void call(name, input).catch(() => {})
const blobs = { get: async (name: string) => (await call('blob', name)) as Uint8Array | undefined }
const ports: ViewPorts = {
  follow: (from, on) => {
    take = on
    say('follow', { of: ++following, from })
    return () => call('unfollow') as Promise<void>
  },
  position: async () => (await call('position')) as { first: number; last: number },
  decode: (data) => decode(data, blobs, false),
  lag: (messages) => say('lag', messages),
  alarm: ({ name, message, stack }) => say('alarm', { name, message, stack }),
  embed: async (texts) => (await call('embed', texts)) as EmbeddingAnswer,
  distances: (engine) => say('distances', engine),
}
const logs = startLogs(({ name, message, stack }) => say('warn', { name, message, stack }))
const view = serveView(workerData as ViewTerms, ports, logs)
