/**
 * Measures DBOS workflows, from `startWorkflow` until their results are recorded. A workflow
 * executes the configured number of checkpointed steps. DBOS is a library: this process starts and
 * executes the workflows itself, and their state is stored on a separate PostgreSQL server.
 * Arguments: folder of PostgreSQL's programs; its `synchronous_commit`.
 */
import { DBOS } from '@dbos-inc/dbos-sdk'
import { asked, report } from '../support/peer.ts'
import { startPostgres } from '../support/postgres.ts'

const {
  amount,
  steps,
  rest: [bin = '', synchronousCommit = 'on'],
} = asked()
const { store, url } = await startPostgres(bin, { synchronous_commit: synchronousCommit })
DBOS.setConfig({
  name: 'bench',
  applicationVersion: '1',
  systemDatabaseUrl: url,
  logLevel: 'error',
})
const executedAt = new Map()
const job = DBOS.registerWorkflow(
  async (name) => {
    for (let i = 0; i < steps; i++)
      await DBOS.runStep(
        async () => {
          if (!executedAt.has(name)) executedAt.set(name, performance.now())
          return { ok: true }
        },
        { name: `s${i}` },
      )
    return { ok: true }
  },
  { name: 'job' },
)
await DBOS.launch()
await report(
  async (name) => {
    const handle = await DBOS.startWorkflow(job)(name)
    await handle.getResult()
    const at = executedAt.get(name)
    executedAt.delete(name)
    return at
  },
  amount,
  { store },
)
