/**
 * Measures a run with a `for_each` step over many items on ten worker connections. Each item is a
 * job. One-step runs are started at a fixed rate on the same connections, first alone and then
 * during the `for_each`.
 */

import { Http } from './load/http.ts'
import { follow } from './load/sse.ts'
import { completedIn, forEachOf, ITEMS_AT_ONCE, runOf, startRun } from './load/work.ts'
import { instantWorker } from './load/worker.ts'
import { startBaton } from './support/baton.ts'
import {
  atRate,
  costOf,
  cpuOfEach,
  type Figures,
  inFlight,
  inTurn,
  pause,
  percentile,
  type Terms,
  withEachSync,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'A for_each over 10,000 items on 10 worker connections: items per second, and what runs beside it lose'

const WORKERS = 10
const SLOTS = 20
/** Number of one-step runs started per second, both alone and during the `for_each`. */
const BESIDE = 20

async function measure(sync: string, items: number, { profile }: Terms): Promise<Figures> {
  const server = await startBaton({ sync, profile })
  const http = new Http(server.port, server.key, 64)
  const waiting = new Map<string, () => void>()
  const early = new Set<string>()
  const stops = await Promise.all(
    Array.from({ length: WORKERS }, (_, i) => instantWorker(server, SLOTS, () => {}, `bench-${i}`)),
  )
  stops.push(
    await follow(server.port, server.key, '/v1/projects/default/runs/events', (text) => {
      for (const run of completedIn(text)) {
        const done = waiting.get(run)
        if (done) done()
        else early.add(run)
      }
    }),
  )
  const completed = async (body: string): Promise<string> => {
    const id = await startRun(http, body)
    if (!early.delete(id)) await new Promise<void>((done) => waiting.set(id, done))
    waiting.delete(id)
    return id
  }
  const small = () => completed(runOf(1, 'beside'))
  const all = async (): Promise<void> => {
    const id = await completed(forEachOf(items))
    const { result } = JSON.parse((await http.get(`/v1/projects/default/runs/${id}`)).body) as {
      result: { completed: number }
    }
    if (result.completed !== items)
      throw new Error(`${result.completed} of ${items} items completed`)
  }
  try {
    await inFlight(50, 500, small)
    await completed(forEachOf(Math.min(items, 1000)))
    await pause(1000)
    const alone = await atRate(BESIDE, BESIDE * 10, small)
    const one = await costOf(() => server.processes, all)
    let over = false
    const both = all().then(() => {
      over = true
    })
    const beside: number[] = []
    const begun: Promise<unknown>[] = []
    for (
      const from = performance.now();
      !over;
      await pause(from + (begun.length * 1000) / BESIDE - performance.now())
    ) {
      const at = performance.now()
      begun.push(small().then(() => beside.push(performance.now() - at)))
    }
    await Promise.all([both, ...begun])
    return {
      rate: items / one.seconds,
      alone50: percentile(alone, 0.5),
      alone99: percentile(alone, 0.99),
      beside50: percentile(beside, 0.5),
      beside99: percentile(beside, 0.99),
      ...cpuOfEach(one.cpu, items),
    }
  } finally {
    for (const stop of stops) stop()
    http.close()
    await server.stop()
  }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const items = terms.quick ? 2000 : 10_000
  const measured = await inTurn(
    withEachSync((sync) => measure(sync, items, terms)),
    terms,
    ({ rate = 0, alone50 = 0, beside50 = 0 }) =>
      `${whole(rate)} items/s; a run of one step p50 ${ms(alone50)} ms alone, ${ms(beside50)} ms beside it`,
  )
  const lines = measured.map(
    ([
      name,
      {
        rate = 0,
        alone50 = 0,
        alone99 = 0,
        beside50 = 0,
        beside99 = 0,
        server = 0,
        store = 0,
        load = 0,
      },
    ]) => [
      name,
      whole(rate),
      cell(ms(alone50), ms(alone99)),
      cell(ms(beside50), ms(beside99)),
      cell(ms(server), ms(store), ms(load)),
    ],
  )
  return (
    table(
      [
        `${whole(items)} items`,
        'items/s',
        'a run of one step, alone: p50 / p99 ms',
        'beside it: p50 / p99 ms',
        'CPU ms per item: server / store / load',
      ],
      [...lines, ['*target (fsync always)*', '≥ 2,000', '', 'as alone', '']],
    ) +
    note(
      `${ITEMS_AT_ONCE} items under way at once, ${WORKERS} connections with ${SLOTS} slots each. ` +
        `${BESIDE} runs of one step per second, on the same connections.`,
    )
  )
}
