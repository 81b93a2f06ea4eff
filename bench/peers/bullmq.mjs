/**
 * BullMQ on a Redis server of its own: a job from `add` until its completion is heard of. A process of its own; prints the
 * measured figures as JSON. Usage: node --import tsx bench/peers/bullmq.mjs <appendfsync> <count> <idle>
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Queue, QueueEvents, Worker } from 'bullmq'
import { freePort } from '../../nodes/nats/server.ts'
import { load } from '../measure.ts'

const [fsync = 'always', count = '4000', idle = '200'] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'baton-redis-'))
const port = await freePort()
const server = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--appendonly', 'yes', '--appendfsync', fsync, '--save', ''], { stdio: 'ignore' })
const connection = { host: '127.0.0.1', port }
const queue = new Queue('q', { connection })
const events = new QueueEvents('q', { connection })
const executedAt = new Map()
const worker = new Worker('q', async (job) => { executedAt.set(job.name, performance.now()); return { ok: true } }, { connection, concurrency: 200 })
for (const client of [queue, events, worker]) client.on('error', () => {})
await Promise.all([queue.waitUntilReady(), events.waitUntilReady(), worker.waitUntilReady()])
const waiting = new Map()
events.on('completed', ({ jobId }) => { waiting.get(jobId)?.(); waiting.delete(jobId) })
let ids = 0
const measured = await load(async (name) => {
  const jobId = `j${ids++}`
  const done = new Promise((resolve) => waiting.set(jobId, resolve))
  await queue.add(name, { name }, { jobId })
  await done
  const at = executedAt.get(name)
  executedAt.delete(name)
  return at
}, { count: Number(count), idle: Number(idle) })
process.stdout.write(`${JSON.stringify(measured)}\n`)
server.kill('SIGKILL')
rmSync(folder, { recursive: true, force: true })
process.exit()
