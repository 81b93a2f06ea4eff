/**
 * Rows are written while the shard node and a gateway are killed repeatedly. Every acknowledged
 * change is stored exactly once, versions count the changes to a row, and no bulk insert is stored
 * in part.
 */
import t from 'tap'
import { listOf } from '../support/given.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

type Json = Record<string, never>
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const KILLS = Number(process.env['KILLS'] ?? 2)
/** Milliseconds between two requests of a client. */
const PAUSE_MS = 20
/** Number of rows of a bulk insert. */
const BULK = 50
t.setTimeout(150_000 + KILLS * 15_000)

t.test(
  'acknowledged changes of rows survive kills',
  { timeout: 140_000 + KILLS * 15_000 },
  async (t) => {
    const it = await processes({ ...hasty, BATON_SHARDS: '3' })
    t.teardown(() => it.stop())
    const [steady = 0, shaky = 0] = await portsFor(2)
    let owner = await it.node('shards-0', 'shards')
    await it.node('steady', 'gateway,views', steady)
    let gateway = await it.node('shaky-0', 'gateway', shaky)

    const ports = [steady, shaky]
    /**
     * Sends a request to the gateways in turn until the answer is not a server error, for at most a
     * minute. Without an idempotency key, an answer of 404 or 409 may result from an earlier
     * attempt that was stored.
     */
    const call = async (
      first: number,
      method: string,
      path: string,
      body?: object,
      key?: string,
    ): Promise<{ status: number; body: Json }> => {
      const until = Date.now() + 60_000
      for (let attempt = first; ; attempt++) {
        const port = ports[attempt % ports.length]
        const url = `http://127.0.0.1:${port}/v1/projects/default/tables${path}`
        const answer = await fetch(url, {
          method,
          headers: {
            authorization: `Bearer ${it.key}`,
            ...(body && { 'content-type': 'application/json' }),
            ...(key !== undefined && { 'idempotency-key': key }),
          },
          ...(body && { body: JSON.stringify(body) }),
        })
          .then(async (got) => ({ status: got.status, text: await got.text() }))
          .catch((error: unknown) => ({ status: 503, text: JSON.stringify({ error: `${error}` }) }))
        if (answer.status < 500 || Date.now() > until)
          return { status: answer.status, body: JSON.parse(answer.text || '{}') as Json }
        await pause(25)
      }
    }
    const schema = {
      identity_column: 'name',
      columns: [
        { name: 'name', type: 'string', required: true },
        { name: 'n', type: 'number' },
      ],
    }
    const table = await call(0, 'POST', '', { name: 'kept', schema }, 'table')
    t.equal(table.status, 201)
    const T = `/${String(table.body['id'])}`

    let over = false
    const inserted: string[] = []
    const bulks: string[] = []
    let updates = 0
    let upserts = 0
    const failures: unknown[] = []
    const expect = (statuses: readonly number[], got: { status: number; body: Json }): boolean => {
      if (!statuses.includes(got.status)) failures.push(got)
      return statuses.includes(got.status)
    }
    const hot = await call(0, 'POST', `${T}/rows`, { data: { name: 'hot', n: 0 } }, 'hot')
    const hotRow = `${T}/rows/${String(hot.body['id'])}`
    const repeat = async (step: (i: number) => Promise<void>): Promise<void> => {
      for (let i = 0; !over; i++, await pause(PAUSE_MS)) await step(i)
    }
    const work = [
      repeat(async (i) => {
        const name = `single-${i}`
        if (expect([201], await call(i, 'POST', `${T}/rows`, { data: { name } }, name)))
          inserted.push(name)
      }),
      repeat(async (i) => {
        const rows = Array.from({ length: BULK }, (_, n) => ({ name: `bulk-${i}-${n}`, n }))
        if (expect([201], await call(i, 'POST', `${T}/bulk`, { rows }, `bulk-${i}`)))
          bulks.push(`bulk-${i}`)
      }),
      ...[0, 1].map((worker) =>
        repeat(async (i) => {
          const data = { name: 'shared', n: i }
          if (
            expect([200, 201], await call(i, 'POST', `${T}/upsert`, { data }, `u-${worker}-${i}`))
          )
            upserts++
        }),
      ),
      // These updates have no idempotency key, but they name the expected version. If they conflict
      // with exactly the next version, an earlier attempt was stored.
      repeat(async (i) => {
        const version = updates + 1
        const got = await call(i, 'PATCH', hotRow, { data: { n: version }, version })
        const current = (got.body['error'] as Json | undefined)?.['details'] as Json | undefined
        if (
          got.status === 200 ||
          (got.status === 409 && current?.['current_version'] === version + 1)
        )
          updates++
        else failures.push(got)
      }),
    ]
    for (let n = 1; n <= KILLS; n++) {
      await pause(700)
      await owner.kill()
      owner = await it.node(`shards-${n}`, 'shards')
      await pause(700)
      await gateway.kill()
      gateway = await it.node(`shaky-${n}`, 'gateway', shaky)
    }
    await pause(700)
    over = true
    await Promise.all(work)
    t.strictSame(failures, [], 'every request was answered as expected')
    t.comment(
      `${inserted.length} rows, ${bulks.length} bulks, ${updates} updates, ${upserts} upserts`,
    )

    const rows: Json[] = []
    for (let cursor: unknown; ; ) {
      const { body } = await call(0, 'POST', `${T}/query`, {
        limit: 200,
        ...(cursor !== undefined && { cursor }),
      })
      rows.push(...(listOf(body) as Json[]))
      cursor = body['next_cursor']
      if (cursor === undefined) break
    }
    const names = rows.map(({ data }) => String((data as unknown as Json)['name']))
    t.equal(new Set(names).size, names.length, 'each identity once')
    t.equal(new Set(rows.map(({ id }) => id)).size, rows.length, 'each id once')
    t.strictSame(
      inserted.filter((name) => !names.includes(name)),
      [],
      'every acknowledged row is there',
    )
    t.equal(names.filter((name) => name.startsWith('single-')).length, inserted.length)
    const sizes = new Map<string, number>()
    for (const name of names.filter((one) => one.startsWith('bulk-'))) {
      const bulk = name.split('-').slice(0, 2).join('-')
      sizes.set(bulk, (sizes.get(bulk) ?? 0) + 1)
    }
    t.strictSame(
      [...sizes].filter(([, size]) => size !== BULK),
      [],
      'no bulk is there in part',
    )
    t.strictSame(
      bulks.filter((bulk) => !sizes.has(bulk)),
      [],
      'every acknowledged bulk is there',
    )
    const versionOf = (name: string) => Number(rows[names.indexOf(name)]?.['version'])
    t.equal(versionOf('hot'), updates + 1, 'each update counted once')
    t.equal(versionOf('shared'), upserts, 'each upsert counted once')
    const { body: stats } = await call(0, 'GET', `${T}/stats`)
    t.equal(stats['row_count'], rows.length)
  },
)
