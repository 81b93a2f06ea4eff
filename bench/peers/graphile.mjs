/**
 * Measures jobs of Graphile Worker, from `addJob` until their completion. One worker with 200 slots
 * executes them. The jobs are stored on a separate PostgreSQL server with Debian's defaults (fsync
 * and synchronous_commit on). Arguments: folder of PostgreSQL's programs; `batched` to fetch and
 * complete jobs in batches, which increases both throughput and latency.
 */
import { Logger, run } from 'graphile-worker'
import { asked, report } from '../support/peer.ts'
import { startPostgres } from '../support/postgres.ts'

const {
  amount,
  rest: [bin = '', batched],
} = asked()
const { store, url } = await startPostgres(bin)
const executedAt = new Map()
const waiting = new Map()
const runner = await run({
  connectionString: url,
  noHandleSignals: true,
  preset: {
    worker: {
      concurrentJobs: 200,
      maxPoolSize: 40,
      pollInterval: 1000,
      ...(batched && { localQueue: { size: 200 }, completeJobBatchDelay: 0 }),
    },
  },
  taskList: {
    job: async ({ name }) => {
      executedAt.set(name, performance.now())
    },
  },
  // The default logger writes a line for every job.
  logger: new Logger(() => () => {}),
})
runner.events.on('job:complete', ({ job }) => {
  waiting.get(job.payload.name)?.()
  waiting.delete(job.payload.name)
})
await report(
  async (name) => {
    const done = new Promise((resolve) => waiting.set(name, resolve))
    await runner.addJob('job', { name })
    await done
    const at = executedAt.get(name)
    executedAt.delete(name)
    return at
  },
  amount,
  { store },
)
