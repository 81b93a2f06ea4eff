/** Measures HTTP requests that each read one run, on keep-alive connections. */

import { served } from './load/served.ts'
import { runOf, startRun } from './load/work.ts'
import {
  costOf,
  type Figures,
  inFlight,
  inTurn,
  percentile,
  type Terms,
  withEachSync,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about = 'GET of a run: requests per second over 32 connections'

const CONNECTIONS = 32
const RUNS = 1000

async function measure(sync: string, count: number, profile: string | undefined): Promise<Figures> {
  return served({ sync, profile }, CONNECTIONS, async (server, http) => {
    const ids: string[] = []
    await inFlight(CONNECTIONS, RUNS, async (i) =>
      ids.push(await startRun(http, runOf(1, `r${i}`))),
    )
    const get = async (i: number) => {
      const id = ids[i % RUNS] ?? ''
      const { status, body } = await http.get(`/v1/projects/default/runs/${id}`)
      if (status !== 200 || !body.startsWith(`{"id":"${id}"`))
        throw new Error(`the run ${id} was answered ${status}: ${body}`)
    }
    await inFlight(CONNECTIONS, count / 4, get)
    const {
      result: times,
      seconds,
      cpu,
    } = await costOf(
      () => server.processes,
      () => inFlight(CONNECTIONS, count, get),
    )
    return {
      rate: count / seconds,
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
      server: (cpu('server') * 1e6) / count,
      load: (cpu('load') * 1e6) / count,
    }
  })
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const count = terms.quick ? 20_000 : 100_000
  const measured = await inTurn(
    withEachSync((sync) => measure(sync, count, terms.profile)),
    terms,
    ({ rate }) => `${whole(rate ?? Number.NaN)} GET/s`,
  )
  const lines = measured.map(([name, { rate = 0, p50 = 0, p99 = 0, server = 0, load = 0 }]) => [
    name,
    whole(rate),
    cell(ms(p50), ms(p99)),
    cell(whole(server), whole(load)),
  ])
  return (
    table(
      ['GET of a run, 32 connections', 'GET/s', 'p50 / p99 ms', 'CPU µs per GET: server / load'],
      [...lines, ['*target*', '≥ 10,000', '', '']],
    ) + note(`${whole(count)} requests for ${whole(RUNS)} runs, each with its key checked.`)
  )
}
