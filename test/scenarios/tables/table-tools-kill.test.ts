/**
 * Executors are killed while steps insert rows. A job whose executor was killed after the insertion
 * and before the report is executed again. Nevertheless, the row exists only once, and the step
 * completes.
 */
import t from 'tap'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

type Json = Record<string, never>
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
/** Number of runs in progress when an executor is killed. */
const RUNS = 24
/** Maximum number of kills. */
const KILLS = 8
t.setTimeout(180_000)

t.test(
  'an insertion is not repeated after its executor was killed',
  { timeout: 170_000 },
  async (t) => {
    const it = await processes({ ...hasty, BATON_SHARDS: '3' })
    t.teardown(() => it.stop())
    const [port = 0] = await portsFor(1)
    await it.node('steady', 'gateway,shards,views', port)
    const call = async (method: string, path: string, body?: object): Promise<Json> => {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/projects/default${path}`, {
        method,
        headers: { authorization: `Bearer ${it.key}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return JSON.parse(text || '{}') as Json
    }
    const itemsOf = (page: Json): Json[] => (page['items'] ?? []) as unknown as Json[]
    const schema = {
      identity_column: 'name',
      columns: [{ name: 'name', type: 'string', required: true }],
    }
    const table = await call('POST', '/tables', { name: 'kept', schema })
    const rowsOf = async (round: number): Promise<Json[]> =>
      itemsOf(
        await call('POST', `/tables/${table['id']}/search`, { query: `r${round}`, limit: 200 }),
      )
    const start = async (name: string): Promise<string> => {
      const step = {
        kind: 'action',
        config: {
          action_name: 'service.table.insert',
          parameters: { table: 'kept', data: { name } },
        },
      }
      const run = await call('POST', '/runs', { spec: { steps: [step] } })
      return String(run['id'])
    }
    const endOf = async (id: string): Promise<Json> => {
      for (const until = Date.now() + 60_000; ; await pause(100)) {
        const run = await call('GET', `/runs/${id}`)
        if (['completed', 'failed'].includes(run['status'] ?? '') || Date.now() > until) return run
      }
    }

    let executor = await it.node('executor-0', 'executor')
    /** Number of jobs that were executed again after their row had been inserted. */
    let repeated = 0
    for (let round = 1; repeated === 0 && round <= KILLS; round++) {
      const ids = await Promise.all(
        Array.from({ length: RUNS }, (_, i) => start(`r${round} n${i}`)),
      )
      while ((await rowsOf(round)).length === 0) await pause(1)
      await executor.kill()
      const before = new Set((await rowsOf(round)).map(({ id }) => String(id)))
      executor = await it.node(`executor-${round}`, 'executor')
      const runs = await Promise.all(ids.map(endOf))
      t.strictSame(
        runs.filter(({ status }) => status !== 'completed'),
        [],
        `all runs of round ${round} complete`,
      )
      const rows = await rowsOf(round)
      t.equal(rows.length, RUNS)
      t.ok(rows.every(({ version }) => version === 1))
      for (const id of ids) {
        const [job] = itemsOf(await call('GET', `/runs/${id}/jobs`))
        const run = runs.find((one) => one['id'] === id)
        const [output] = Object.values(run?.['result'] ?? {}) as { readonly id: string }[]
        const row = String(output?.id)
        t.ok(
          rows.some((one) => String(one['id']) === row),
          'the step returns the stored row',
        )
        if (Number(job?.['claim_attempt']) > 1 && before.has(row)) repeated++
      }
    }
    t.ok(repeated > 0, `${repeated} jobs were executed again after their insertion`)
  },
)
