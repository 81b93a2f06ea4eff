/**
 * Measures runs of one step: from the HTTP request through a worker's job to the event that reports
 * the end. For comparison, a job or a one-step workflow of other systems is measured under the same
 * load. In each case, the server, its store, the load and the worker share one machine.
 */

import { measureRuns } from './load/work.ts'
import { type Amount, inTurn, type Loaded, type Terms } from './support/measure.ts'
import { jobPeers, present } from './support/peers.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'One-step runs: throughput with 200 in flight, latency when idle; BullMQ, Restate, graphile-worker and DBOS beside it'

/** Returns the amount of work of one measurement, which is the same for every system. */
const amountOf = (quick: boolean): Amount =>
  quick
    ? { warm: 1000, count: 3000, idle: 200, concurrency: 200 }
    : { warm: 3000, count: 15_000, idle: 1000, concurrency: 200 }

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const amount = amountOf(terms.quick)
  const rows: [string, () => Promise<Loaded>][] = [
    ['Baton, fsync always', () => measureRuns('always', 1, amount, terms)],
    ['Baton, lazy sync (2m)', () => measureRuns('2m', 1, amount, terms)],
    ...present(jobPeers(), terms.say).map((peer): [string, () => Promise<Loaded>] => [
      peer.name,
      () => peer.measure(amount, 1),
    ]),
  ]
  const measured = await inTurn(
    rows,
    terms,
    (run) =>
      `${whole(run.throughput)} done/s, idle start → done p50 ${ms(run.done_p50)} ms, ` +
      `load ${ms(run.cpu_load)} ms of CPU per run`,
  )
  const lines = measured.map(([name, run]) => [
    name,
    whole(run.throughput),
    cell(ms(run.busy_p50), ms(run.busy_p99)),
    cell(ms(run.executed_p50), ms(run.executed_p99)),
    cell(ms(run.done_p50), ms(run.done_p99)),
    cell(ms(run.cpu_server), ms(run.cpu_store), ms(run.cpu_load)),
  ])
  const head = [
    'one step, 200 in flight',
    'done/s',
    'busy p50 / p99 ms',
    'idle start → executed p50 / p99 ms',
    'idle start → done p50 / p99 ms',
    'CPU ms per run: server / store / load',
  ]
  return (
    table(head, [
      ...lines,
      ['*target (fsync always)*', '≥ 3,000', '', '≤ 2.5 / ≤ 10', '≤ 4.5', 'load ≤ 0.2'],
    ]) +
    note(
      `${whole(amount.count)} runs each after ${whole(amount.warm)} to warm up, then ${amount.idle} one at a time ` +
        'after as many that are not measured.',
      'Load: client and worker; a peer’s own client and worker speak to its store directly, ' +
        'Baton’s through HTTP, a worker socket and an event stream. ' +
        'Store: nats-server, Redis, PostgreSQL.',
    )
  )
}
