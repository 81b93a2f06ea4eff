/**
 * Measures many sleeping runs: the server memory per run, and how late the runs end. All runs are
 * started first, and sleep until the server has evicted them from memory. Then they wake one after
 * another, at a rate that one machine can sustain.
 */

import { Http } from './load/http.ts'
import { follow } from './load/sse.ts'
import { completedIn, startRun } from './load/work.ts'
import { startBaton } from './support/baton.ts'
import {
  costOf,
  type Figures,
  inFlight,
  inTurn,
  pause,
  percentile,
  type Terms,
} from './support/measure.ts'
import { COLLECT, settled } from './support/memory.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  '100,000 sleeping runs: memory of each, and how long after their time they have ended'

const CONNECTIONS = 64
/**
 * Milliseconds after which the server has evicted actors with a distant deadline from memory. This
 * includes the time for one or two checkpoints.
 */
const EVICTION_MS = 75_000
/** Milliseconds that are reserved for measurements before the runs wake. */
const MEASURING_MS = 30_000
/**
 * Number of runs that wake per second: at most `most`, and at most the fraction `share` of the runs
 * that can be started per second.
 */
const WAKES = { most: 200, share: 0.4 } as const
/**
 * Number of runs that sleep before the first memory measurement. By then, code is loaded, pools are
 * filled, and the page cache of SQLite is allocated (64 MiB).
 */
const WARM = 8000
/** Safety factor: starting all runs may take this many times as long as the warm-up predicts. */
const SLACK = 1.6

const sleepUntil = (at: number): string =>
  JSON.stringify({
    spec: { steps: [{ id: 'nap', kind: 'sleep', config: { until: new Date(at).toISOString() } }] },
  })

async function measure(sync: string, runs: number, { profile, say }: Terms): Promise<Figures> {
  const server = await startBaton({ sync, profile, node: COLLECT })
  const [pid = 0] = server.processes.server
  const http = new Http(server.port, server.key, CONNECTIONS)
  /** Returns resident memory and heap in bytes, after garbage collection. */
  const look = async (): Promise<{ resident: number; heap: number }> => {
    const bytes = await settled(pid)
    return {
      resident: bytes,
      heap: Number(
        /^nodejs_heap_size_used_bytes (\S+)/m.exec((await http.get('/metrics')).body)?.[1] ??
          Number.NaN,
      ),
    }
  }
  const dueOf = new Map<string, number>()
  const start = async (at: number) => {
    dueOf.set(await startRun(http, sleepUntil(at)), at)
  }
  const late: number[] = []
  const stop = await follow(server.port, server.key, '/v1/projects/default/runs/events', (text) => {
    const now = Date.now()
    for (const run of completedIn(text)) {
      const due = dueOf.get(run)
      dueOf.delete(run)
      if (due !== undefined) late.push(now - due)
    }
  })
  const ended = async (): Promise<void> => {
    for (let left = dueOf.size, since = Date.now(); dueOf.size > 0; await pause(100)) {
      if (dueOf.size !== left) [left, since] = [dueOf.size, Date.now()]
      if (Date.now() - since > 60_000) throw new Error(`${left} runs did not wake within a minute`)
    }
  }
  try {
    const from = Date.now()
    await inFlight(CONNECTIONS, WARM, () => start(Date.now() + 5000))
    const rate = WARM / ((Date.now() - from) / 1000)
    const wakes = Math.min(WAKES.most, rate * WAKES.share)
    await ended()
    late.length = 0
    await pause(EVICTION_MS)
    const before = await look()
    const first = Date.now() + (runs / rate) * 1000 * SLACK + EVICTION_MS + MEASURING_MS
    const started = await costOf(
      () => server.processes,
      () => inFlight(CONNECTIONS, runs, (i) => start(first + (i * 1000) / wakes)),
    )
    say(`${whole(runs / started.seconds)} runs/s went to sleep`)
    await pause(EVICTION_MS)
    const idle = await costOf(
      () => server.processes,
      () => pause(10_000),
    )
    const after = await look()
    const spare = first - Date.now()
    if (spare < 0)
      throw new Error(`the first run was to wake ${-spare} ms before the last look at the memory`)
    await pause(spare)
    const woken = await costOf(() => server.processes, ended)
    const each = (name: 'resident' | 'heap') => (after[name] - before[name]) / runs / 1024
    return {
      resident: each('resident'),
      heap: each('heap'),
      idle: (idle.cpu('server') / 10) * 100,
      started: runs / started.seconds,
      wakes,
      p50: percentile(late, 0.5),
      p99: percentile(late, 0.99),
      most: percentile(late, 1),
      server: (woken.cpu('server') * 1e3) / runs,
      store: (woken.cpu('store') * 1e3) / runs,
    }
  } finally {
    stop()
    http.close()
    await server.stop()
  }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const runs = terms.quick ? 10_000 : 100_000
  const kib = (value: number): string => `${value.toFixed(2)} KiB`
  const measured = await inTurn(
    [['Baton, fsync always', () => measure('always', runs, terms)]],
    terms,
    ({ resident = 0, heap = 0, idle = 0, p50 = 0, p99 = 0, most = 0 }) =>
      `${kib(resident)} resident each, ${kib(heap)} of them heap, ` +
      `${idle.toFixed(1)} % of a core meanwhile; ` +
      `ended after p50 ${ms(p50)}, p99 ${ms(p99)}, at most ${ms(most)} ms`,
  )
  const lines = measured.map(
    ([
      name,
      {
        resident = 0,
        heap = 0,
        idle = 0,
        started = 0,
        wakes = 0,
        p50 = 0,
        p99 = 0,
        most = 0,
        server = 0,
        store = 0,
      },
    ]) => [
      name,
      kib(resident),
      kib(heap),
      `${idle.toFixed(1)} %`,
      whole(started),
      whole(wakes),
      cell(ms(p50), ms(p99), ms(most)),
      cell(ms(server), ms(store)),
    ],
  )
  return (
    table(
      [
        `${whole(runs)} sleeping runs`,
        'resident, each',
        'heap, each',
        'processor meanwhile, of one core',
        'started/s',
        'woken/s',
        'their time → ended, p50 / p99 / max ms',
        'CPU ms per wake: server / store',
      ],
      [...lines, ['*target*', '≤ 2 KiB', '', '', '', '', '≤ 1,000 at most', '']],
    ) +
    note(
      'Memory of the server before they were started and after they had left it, ' +
        'each time after collecting garbage. Their times are spread evenly.',
    )
  )
}
