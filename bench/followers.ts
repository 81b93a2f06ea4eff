/**
 * Measures the delivery delay of events to many followers of one project's event stream. Each
 * follower receives every event. The followers run in a separate process. The delay is measured
 * from the timestamp of the event, which is the time of the decision, before the commit.
 */

import { startCrowd } from './load/crowd.ts'
import { served } from './load/served.ts'
import { EVENTS_PER_RUN, runOf, startRun } from './load/work.ts'
import { instantWorker } from './load/worker.ts'
import { allowed } from './support/limits.ts'
import {
  atRate,
  costOf,
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
  '5,000 followers of a project with 20 events per second each: time until an event is delivered'

const RUNS_PER_SECOND = 2
async function measure(
  sync: string,
  clients: number,
  seconds: number,
  profile: string | undefined,
): Promise<Figures> {
  return served({ sync, profile }, 16, async (server, http) => {
    const crowd = startCrowd('followers-load.ts', [
      String(server.port),
      server.key,
      String(clients),
    ])
    try {
      await crowd.ready()
      const stopWorker = await instantWorker(server, 200, () => {})
      const start = (i: number) => startRun(http, runOf(1, `r${i}`))
      await inFlight(1, 10, start)
      await pause(3000)
      const processes = { ...server.processes, load: [crowd.pid] }
      const runs = RUNS_PER_SECOND * seconds
      const {
        result: { result: lag, seconds: elapsed, cpu },
        lateness,
      } = await crowd.counting(() =>
        costOf(
          () => processes,
          async () => {
            const late = await atRate(RUNS_PER_SECOND, runs, start)
            await pause(2000)
            return late
          },
        ),
      )
      stopWorker()
      return {
        expected: runs * EVENTS_PER_RUN * clients,
        ...lateness,
        lag: percentile(lag, 0.99),
        server: (cpu('server') / elapsed) * 100,
        load: (cpu('load') / elapsed) * 100,
      }
    } finally {
      crowd.stop()
    }
  })
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const clients = allowed(terms.quick ? 1000 : 5000, terms.say)
  const seconds = terms.quick ? 10 : 30
  const measured = await inTurn(
    withEachSync((sync) => measure(sync, clients, seconds, terms.profile)),
    terms,
    ({ events = 0, expected = 0, p99 = 0 }) =>
      `${whole(events)} of ${whole(expected)} events delivered, p99 ${ms(p99)} ms`,
  )
  const lines = measured.map(
    ([
      name,
      { events = 0, expected = 0, p50 = 0, p99 = 0, max = 0, lag = 0, server = 0, load = 0 },
    ]) => [
      name,
      `${whole(events)} of ${whole(expected)}`,
      cell(whole(p50), whole(p99), whole(max)),
      ms(lag),
      cell(whole(server), whole(load)),
    ],
  )
  return (
    table(
      [
        `${whole(clients)} followers, 20 events/s each`,
        'delivered',
        'delivery p50 / p99 / max ms',
        'start of a run p99 ms',
        'CPU % of a core: server / followers',
      ],
      [...lines, ['*target (5,000)*', 'all', 'p99 ≤ 150', '', '']],
    ) +
    note(
      `${RUNS_PER_SECOND} one-step runs per second for ${seconds} s, at a fixed rate; ` +
        `each gives the stream ${EVENTS_PER_RUN} events.`,
    )
  )
}
