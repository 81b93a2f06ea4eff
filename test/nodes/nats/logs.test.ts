/**
 * The store of log lines over a real nats-server: reads in both directions, deletion, and limits.
 */
import { JetStreamApiError, type StreamConfig } from '@nats-io/jetstream'
import t from 'tap'
import { openLogs } from '../../../nodes/nats/logs/store.ts'
import { ensureLogs } from '../../../nodes/nats/logs/stream.ts'
import type { Nats } from '../../../nodes/nats/server/connect.ts'
import type { LogBatch, NumberedBatch } from '../../../protocol/jobs/logs.ts'
import { names } from '../../../protocol/subjects.ts'
import { fake } from '../../support/fake-world.ts'
import { startStore } from '../support/store.ts'

const MIB = 1_048_576
const retention = { age_ms: 3_600_000, bytes: 64 * MIB, batches: 1000 }
const { one } = await startStore('5s')
const announced: unknown[] = []
const bus = {
  publish: (subject: string, message: unknown) => void announced.push([subject, message]),
  subscribe: () => () => {},
}
const store = await openLogs(one, bus, retention, 1)
const batch = (text: string): LogBatch => ({
  job_id: 'job_1',
  attempt: 1,
  worker_instance_id: 'w',
  lines: [
    { at: '2026-01-01T00:00:00.000Z', level: 'info', text },
    { at: '2026-01-01T00:00:00.000Z', level: 'info', text: 'second' },
  ],
})
const textsOf = (batches: readonly NumberedBatch[]) => batches.map(({ lines }) => lines[0]?.text)

t.test(
  'batches are announced, and read in both directions, among those of other runs',
  async (t) => {
    const expected: string[] = []
    // At first, one in 40 batches belongs to the run. At the end, all batches do.
    for (let n = 0; n < 900; n++) {
      const mine = n % 40 === 0 || n > 600
      if (mine) expected.push(String(n))
      await store.append('prj_1', mine ? 'run_1' : `run_${2 + (n % 3)}`, batch(String(n)))
    }
    t.strictSame(announced[0], ['logged.prj_1.run_1', { position: 1001 }])
    const up: NumberedBatch[] = []
    for (let [from, more] = [0, true]; more; ) {
      const part = await store.from('prj_1', 'run_1', from)
      up.push(...part.batches)
      from = (part.batches.at(-1)?.sequence ?? 0) + 1
      more = part.more
    }
    t.strictSame(textsOf(up), expected)
    const down: NumberedBatch[] = []
    let reads = 0
    for (let [before, more]: [number | undefined, boolean] = [undefined, true]; more; reads++) {
      const part = await store.before('prj_1', 'run_1', before)
      down.unshift(...part.batches)
      before = part.batches[0]?.sequence ?? before
      more = part.more
    }
    t.strictSame(textsOf(down), expected)
    t.ok(reads < 8, `${reads} reads`)
    t.strictSame(await store.from('prj_1', 'run_9', 0), { batches: [], more: false })
    t.strictSame(await store.before('prj_1', 'run_9'), { batches: [], more: false })
  },
)

t.test('the lines of a project are deleted, and no others', async (t) => {
  await store.append('prj_2', 'run_8', batch('other'))
  await store.forget('prj_1')
  t.strictSame(await store.from('prj_1', 'run_1', 0), { batches: [], more: false })
  t.strictSame(textsOf((await store.before('prj_2', 'run_8')).batches), ['other'])
})

t.test('changed limits apply at the next start, and the oldest lines are deleted', async (t) => {
  await ensureLogs(one, { ...retention, batches: 2 }, 1)
  for (const text of ['a', 'b', 'c']) await store.append('prj_3', 'run_3', batch(text))
  t.strictSame(textsOf((await store.from('prj_3', 'run_3', 0)).batches), ['b', 'c'])
  const { config } = await one.manager.streams.info(names.logs)
  t.match(config, { max_msgs_per_subject: 2, max_bytes: 64 * MIB, discard: 'old' })
})

t.test('a limit above the free space is halved until it fits', async (t) => {
  const { streams } = one.manager
  await streams.delete(names.logs)
  // An account with limits refuses a stream that reserves more storage than is left.
  const add = async (config: StreamConfig) => {
    if (config.max_bytes <= 100 * MIB) return streams.add(config)
    const description = 'insufficient storage resources available'
    throw new JetStreamApiError({ code: 500, err_code: 10_047, description })
  }
  const info = (name: string) => streams.info(name)
  const manager = fake<Nats['manager']>('manager', { streams: { info, add } })
  const tight = { ...one, manager }
  await ensureLogs(tight, { ...retention, bytes: 300 * MIB }, 1)
  t.equal((await streams.info(names.logs)).config.max_bytes, 75 * MIB)
})
