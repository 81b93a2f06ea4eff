/**
 * Runs of a loop are queued, and schedules fire, while shard nodes are killed repeatedly. Every
 * start becomes one run, the runs execute one at a time, and no schedule fires twice for the same
 * time. Of the scheduled times within an outage, all but the latest may be skipped. No other time
 * is skipped.
 */
import t from 'tap'
import { slotOf } from '../../../protocol/ids.ts'
import { listOf, until } from '../support/given.ts'
import { type Processes, portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

type Json = Record<string, never>
const RUNS = 15
const CLOCKS = 40
const SHARDS = 2
const SCHEDULE_INTERVAL_MS = 10_000
/** Number of kills. With `KILLS=24`, the test takes more than two minutes. */
const KILLS = Number(process.env['KILLS'] ?? 2)
/**
 * Minimum number of milliseconds from one kill to the next. It is less than the interval of the
 * schedules, so successive kills affect different schedules.
 */
const KILL_INTERVAL_MS = 7000
/** Milliseconds from the last outage to the check of the schedules. */
const CHECK_DELAY_MS = 11_000
t.setTimeout(360_000 + KILLS * KILL_INTERVAL_MS * 2)
const nap = (duration: string) => [{ id: 'nap', kind: 'sleep', config: { duration } }]
/**
 * The maximum number of milliseconds for which a request is retried. A node that is starting on a
 * busy machine may need this long.
 */
const RETRY_TIMEOUT_MS = 60_000
const calling =
  (it: Processes, port: number) =>
  async (method: string, path: string, body?: object): Promise<{ status: number; body: Json }> => {
    for (
      const end = Date.now() + RETRY_TIMEOUT_MS;
      ;
      await new Promise((again) => setTimeout(again, 25))
    ) {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/projects/default${path}`, {
        method,
        headers: {
          authorization: `Bearer ${it.key}`,
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body: JSON.stringify(body) }),
      }).then(
        async (got) => ({
          status: got.status,
          body: JSON.parse((await got.text()) || '{}') as Json,
        }),
        () => undefined,
      )
      if (answer && answer.status < 500) return answer
      if (Date.now() > end)
        throw new Error(
          `${method} ${path} was answered ${JSON.stringify(answer)} for ${RETRY_TIMEOUT_MS / 1000} s`,
        )
    }
  }

const it = await processes({ ...hasty, BATON_SHARDS: String(SHARDS) })
t.teardown(() => it.stop())
const [port = 0] = await portsFor(1)
/** The nodes that own the shards. The second test adds another one. */
const deciders = [await it.node('shards-0', 'shards')]
let started = 1
const startDecider = () => it.node(`shards-${started++}`, 'shards')
await it.node('front', 'gateway,views', port)
const call = calling(it, port)

t.test(
  'the queued runs of a loop start one at a time after kills of the shard node',
  { timeout: 120_000 },
  async (t) => {
    const { body: loop } = await call('POST', '/loops', {
      name: 'Line',
      concurrency: 'queue',
      steps: nap('200ms'),
    })
    const replace = async (): Promise<void> => {
      await deciders.shift()?.kill()
      t.comment(`shards-${started - 1} is dead`)
      deciders.push(await startDecider())
    }
    const starts = Array.from({ length: RUNS }, (_, n) =>
      call('POST', `/loops/${loop['id']}/runs`, { event: { n }, idempotency_key: `k${n}` }),
    )
    await Promise.all([Promise.race(starts).then(replace), ...starts])
    const ids = (await Promise.all(starts)).map(({ status, body }) => {
      t.equal(status, 202)
      return String(body['id'])
    })
    await replace()
    const runs = await until(
      () => call('GET', `/runs?loop_id=${loop['id']}&limit=100`).then(({ body }) => listOf(body)),
      (all) => all.length >= RUNS && all.every(({ status }) => status === 'completed'),
    )
    t.strictSame(
      runs.map(({ id }) => String(id)).sort(),
      [...new Set(ids)].sort(),
      'one run for each start',
    )
    const spans = runs
      .map(
        (run) =>
          [Date.parse(String(run['started_at'])), Date.parse(String(run['completed_at']))] as const,
      )
      .sort((a, b) => a[0] - b[0])
    t.ok(
      spans.every(([from], i) => from >= (spans[i - 1]?.[1] ?? 0)),
      'one at a time',
    )
  },
)

t.test(
  'forty schedules fire exactly once for each of their times while shard nodes are killed',
  { timeout: 220_000 + KILLS * KILL_INTERVAL_MS * 2 },
  async (t) => {
    deciders.push(await startDecider())
    const clocks: { id: string; from: number }[] = []
    for (let i = 0; i < CLOCKS; i++) {
      const { status, body } = await call('POST', '/loops', {
        name: `Clock ${i}`,
        steps: nap('0'),
        triggers: [{ kind: 'schedule', config: { interval: '10s' } }],
      })
      t.equal(status, 201)
      clocks.push({ id: String(body['id']), from: Date.parse(String(body['created_at'])) })
      await new Promise((next) => setTimeout(next, SCHEDULE_INTERVAL_MS / CLOCKS / 2))
    }
    const probes = Array.from(
      { length: SHARDS },
      (_, shard) => clocks.find(({ id }) => (slotOf(id) ?? 0) % SHARDS === shard)?.id,
    )
    /**
     * Periods during which a shard may have had no owner: from the kill until all shards have
     * answered.
     */
    const outages: { from: number; to: number }[] = []
    for (let n = 1; n <= KILLS; n++) {
      const from = Date.now()
      await deciders.shift()?.kill()
      t.comment(`kill ${n}`)
      const next = startDecider()
      await Promise.all(probes.map((id) => call('POST', `/loops/${id}/runs`, {})))
      outages.push({ from, to: Date.now() })
      deciders.push(await next)
      await new Promise((pass) => setTimeout(pass, from + KILL_INTERVAL_MS - Date.now()))
    }
    await new Promise((pass) => setTimeout(pass, CHECK_DELAY_MS))
    const end = Date.now()
    t.comment(`the outages lasted ${outages.map(({ from, to }) => to - from).join(', ')} ms`)
    // Whether a schedule may skip this time, because after an outage it fires only for the latest
    // of its times within the outage.
    const passed = (time: number) =>
      outages.some(
        ({ from, to }) => time >= from - 1000 && time + SCHEDULE_INTERVAL_MS <= to + 1000,
      )
    let fires = 0
    for (const { id, from } of clocks) {
      const due = Array.from(
        { length: Math.floor((end - from) / SCHEDULE_INTERVAL_MS) },
        (_, k) => from + (k + 1) * SCHEDULE_INTERVAL_MS,
      ).filter((time) => time < end - 5000 && !passed(time))
      const times = await until(
        () =>
          call('GET', `/runs?loop_id=${id}&limit=100`).then(({ body }) =>
            listOf(body).flatMap(({ meta }) => {
              const { scheduled_at } = (meta ?? {}) as { scheduled_at?: string }
              return scheduled_at === undefined ? [] : [Date.parse(scheduled_at)]
            }),
          ),
        (times) => due.every((time) => times.includes(time)),
      )
      fires += times.length
      if (
        new Set(times).size !== times.length ||
        times.some((time) => (time - from) % SCHEDULE_INTERVAL_MS !== 0)
      )
        t.fail(
          `${id} fired for ${times
            .map((time) => time - from)
            .sort((a, b) => a - b)
            .join(', ')} ms after it was made`,
        )
    }
    t.comment(`${fires} fires`)
  },
)
