/**
 * Measures jobs of Graphile Worker, from `addJob` until their completion. One worker with 200 slots
 * executes them; the jobs are stored on a separate PostgreSQL server with Debian's defaults (fsync
 * and synchronous_commit on). Arguments: folder of PostgreSQL's programs; `batched` to fetch and
 * complete jobs in batches, which increases both throughput and latency.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { Logger, run } from 'graphile-worker'
import { freePort } from '../../nodes/nats/server/server.ts'
import { asked, eventually, folderFor, report, startStore } from '../support/peer.ts'

const {
  amount,
  rest: [bin = '', batched],
} = asked()
/**
 * User id (`-u`) or group id (`-g`) of the user that Debian's package creates. PostgreSQL refuses
 * to run as root.
 */
const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
const user = process.getuid?.() === 0 ? { uid: id('-u'), gid: id('-g') } : {}
const folder = folderFor('uid' in user ? user : undefined)
const data = join(folder, 'data')
const port = await freePort()
execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'bench', '--auth', 'trust', '-E', 'UTF8'], {
  stdio: 'ignore',
  cwd: folder,
  ...user,
})
const store = startStore(
  join(bin, 'postgres'),
  ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder],
  { cwd: folder, end: 'SIGQUIT', ...user },
)
const executedAt = new Map()
const waiting = new Map()
const runner = await eventually(() =>
  run({
    connectionString: `postgres://bench@127.0.0.1:${port}/postgres`,
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
  }),
)
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
