/**
 * Measures runs of ten consecutive action steps, each of which is a job for a worker. For
 * comparison, a Restate handler and a DBOS workflow with ten journaled steps are measured.
 */

import { measureRuns } from './load/work.ts'
import { type Amount, inTurn, type Loaded, type Terms } from './support/measure.ts'
import { present, workflowPeers } from './support/peers.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'Runs of 10 steps: time of one run when idle, steps per second with 50 in flight; Restate and DBOS beside it'

const STEPS = 10
const amountOf = (quick: boolean): Amount =>
  quick
    ? { warm: 100, count: 400, idle: 50, concurrency: 50 }
    : { warm: 500, count: 3000, idle: 200, concurrency: 50 }

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const amount = amountOf(terms.quick)
  const rows: [string, () => Promise<Loaded>][] = [
    ['Baton, fsync always', () => measureRuns('always', STEPS, amount, terms)],
    ['Baton, lazy sync (2m)', () => measureRuns('2m', STEPS, amount, terms)],
    ...present(workflowPeers(), terms.say).map((peer): [string, () => Promise<Loaded>] => [
      peer.name,
      () => peer.measure(amount, STEPS),
    ]),
  ]
  const measured = await inTurn(
    rows,
    terms,
    (run) => `${whole(run.throughput * STEPS)} steps/s, idle p50 ${ms(run.done_p50)} ms`,
  )
  const lines = measured.map(([name, run]) => [
    name,
    cell(ms(run.done_p50), ms(run.done_p99)),
    whole(run.throughput * STEPS),
    cell(ms(run.busy_p50), ms(run.busy_p99)),
    cell(ms(run.cpu_server / STEPS), ms(run.cpu_store / STEPS), ms(run.cpu_load / STEPS)),
  ])
  const head = [
    '10 steps',
    'idle: a run, p50 / p99 ms',
    'steps/s, 50 in flight',
    'busy: a run, p50 / p99 ms',
    'CPU ms per step: server / store / load',
  ]
  return (
    table(head, [...lines, ['*target (fsync always)*', '≤ 25', '', '', '']]) +
    note(
      `${whole(amount.count)} runs each after ${amount.warm} to warm up, then ${amount.idle} one at a time ` +
        'after as many that are not measured.',
    )
  )
}
