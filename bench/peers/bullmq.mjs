/**
 * Measures jobs of BullMQ on a separate Redis server, from `add` until the completion event. One
 * worker with 200 slots executes them. Argument: Redis's `appendfsync`.
 */
import { Queue, QueueEvents, Worker } from 'bullmq'
import { freePort } from '../../nodes/nats/server/server.ts'
import { asked, folderFor, report, startStore } from '../support/peer.ts'

const {
  amount,
  rest: [fsync = 'always'],
} = asked()
const folder = folderFor()
const port = await freePort()
const store = startStore('redis-server', [
  '--port',
  String(port),
  '--bind',
  '127.0.0.1',
  '--dir',
  folder,
  '--appendonly',
  'yes',
  '--appendfsync',
  fsync,
  '--save',
  '',
])
const connection = { host: '127.0.0.1', port }
const queue = new Queue('q', { connection })
const events = new QueueEvents('q', { connection })
const executedAt = new Map()
const worker = new Worker(
  'q',
  async (job) => {
    executedAt.set(job.name, performance.now())
    return { ok: true }
  },
  { connection, concurrency: 200 },
)
for (const client of [queue, events, worker]) client.on('error', () => {})
await Promise.all([queue.waitUntilReady(), events.waitUntilReady(), worker.waitUntilReady()])
const waiting = new Map()
events.on('completed', ({ jobId }) => {
  waiting.get(jobId)?.()
  waiting.delete(jobId)
})
let ids = 0
await report(
  async (name) => {
    const jobId = `j${ids++}`
    const done = new Promise((resolve) => waiting.set(jobId, resolve))
    await queue.add(name, { name }, { jobId })
    await done
    const at = executedAt.get(name)
    executedAt.delete(name)
    return at
  },
  amount,
  { store },
)
