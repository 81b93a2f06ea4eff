/**
 * Runs of a loop queue up, and a schedule fires, while the node that decides is killed again and again: every start becomes one
 * run, one at a time and in order, and no time fires twice.
 */
import t from 'tap'
import { listOf, until } from './given.ts'
import { portsFor, processes } from './processes.ts'
import { hasty } from './sockets.ts'

type Json = Record<string, never>
const RUNS = 15
t.setTimeout(120_000)
t.test('the line and the clock of a loop survive the death of the node that decides', { timeout: 120_000 }, async (t) => {
  const it = await processes({ ...hasty, BATON_SHARDS: '2' })
  t.teardown(() => it.stop())
  const [port = 0] = await portsFor(1)
  let owner = await it.node('shards-0', 'shards')
  await it.node('front', 'gateway,views', port)
  const call = (method: string, path: string, body?: object): Promise<{ status: number; body: Json }> => until(async () => {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/projects/default${path}`, { method, headers: { authorization: `Bearer ${it.key}`, ...(body && { 'content-type': 'application/json' }) }, ...(body && { body: JSON.stringify(body) }) })
      return { status: answer.status, body: JSON.parse((await answer.text()) || '{}') as Json }
    } catch {
      return { status: 503, body: {} }
    }
  }, ({ status }) => status < 500)
  const nap = (duration: string) => [{ id: 'nap', kind: 'sleep', config: { duration } }]
  const { body: loop } = await call('POST', '/loops', { name: 'Line', concurrency: 'queue', steps: nap('200ms') })
  const { body: clock } = await call('POST', '/loops', { name: 'Clock', steps: nap('0'), triggers: [{ kind: 'schedule', config: { interval: '10s' } }] })
  const replace = async (n: number): Promise<void> => {
    await owner.kill()
    t.comment(`shards-${n - 1} is dead`)
    owner = await it.node(`shards-${n}`, 'shards')
  }
  const starts = Array.from({ length: RUNS }, (_, n) => call('POST', `/loops/${loop['id']}/runs`, { event: { n }, idempotency_key: `k${n}` }))
  await Promise.all([Promise.race(starts).then(() => replace(1)), ...starts])
  const ids = (await Promise.all(starts)).map(({ status, body }) => { t.equal(status, 202); return String(body['id']) })
  await replace(2)
  const runs = await until(() => call('GET', `/runs?loop_id=${loop['id']}&limit=100`).then(({ body }) => listOf(body)), (all) => all.length >= RUNS && all.every(({ status }) => status === 'completed'))
  t.strictSame(runs.map(({ id }) => String(id)).sort(), [...new Set(ids)].sort(), 'one run for each start')
  const spans = runs.map((run) => [Date.parse(String(run['started_at'])), Date.parse(String(run['completed_at']))] as const).sort((a, b) => a[0] - b[0])
  t.ok(spans.every(([from], i) => from >= (spans[i - 1]?.[1] ?? 0)), 'one at a time')

  await replace(3)
  const fired = async (least: number) => {
    for (;;) {
      const ticks = await until(() => call('GET', `/runs?loop_id=${clock['id']}&limit=100`).then(({ body }) => listOf(body).map((run) => (run['meta'] as unknown as { scheduled_at: string }).scheduled_at)), () => true)
      if (ticks.length >= least) return ticks
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  await fired(1)
  await replace(4)
  const ticks = await fired(3)
  t.equal(new Set(ticks).size, ticks.length, 'no time twice')
  const times = ticks.map((tick) => Date.parse(tick)).sort((a, b) => a - b)
  t.ok(times.every((time, i) => i === 0 || (time - (times[i - 1] ?? 0)) % 10_000 === 0), 'all on the beat')
})
