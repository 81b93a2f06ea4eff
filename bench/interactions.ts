/**
 * Measures interactions over HTTP. Each interaction has one target, whose answer completes it. In
 * the first part, each answer directly follows the creation of its interaction. In the second part,
 * all interactions are created in advance, and only the answers are measured.
 */

import { interactionsOf } from './load/interactions.ts'
import { served } from './load/served.ts'
import {
  costOf,
  cpuOfEach,
  type Figures,
  inFlight,
  inTurn,
  percentile,
  type Terms,
  withEachSync,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'Interactions: created and answered, and answered alone, per second over 128 connections'

const CONNECTIONS = 128

async function measure(sync: string, count: number, profile: string | undefined): Promise<Figures> {
  return served({ sync, profile }, CONNECTIONS, async (server, http) => {
    const load = await interactionsOf(http)
    const { ask } = load
    const answers: number[] = []
    const answer = async (id: string): Promise<void> => {
      const from = performance.now()
      await load.answer(id)
      answers.push(performance.now() - from)
    }
    const one = async (): Promise<void> => answer(await ask())
    await inFlight(CONNECTIONS, count / 4, one)
    answers.length = 0
    const { seconds, cpu } = await costOf(
      () => server.processes,
      () => inFlight(CONNECTIONS, count, one),
    )
    const [p50, p99] = [percentile(answers, 0.5), percentile(answers, 0.99)]
    const asked: string[] = []
    await inFlight(CONNECTIONS, count, async () => void asked.push(await ask()))
    const alone = await costOf(
      () => server.processes,
      () => inFlight(CONNECTIONS, count, (i) => answer(asked[i] as string)),
    )
    return {
      rate: count / seconds,
      alone: count / alone.seconds,
      p50,
      p99,
      ...cpuOfEach(cpu, count),
    }
  })
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const count = terms.quick ? 4000 : 20_000
  const measured = await inTurn(
    withEachSync((sync) => measure(sync, count, terms.profile)),
    terms,
    ({ rate = 0, alone = 0 }) =>
      `${whole(rate)} created and resolved/s, ${whole(alone)} resolved/s that were created before`,
  )
  const lines = measured.map(
    ([name, { rate = 0, alone = 0, p50 = 0, p99 = 0, server = 0, store = 0, load = 0 }]) => [
      name,
      whole(rate),
      whole(alone),
      cell(ms(p50), ms(p99)),
      cell(ms(server), ms(store), ms(load)),
    ],
  )
  return (
    table(
      [
        '128 connections',
        'created and resolved/s',
        'resolved/s, created before',
        'answer p50 / p99 ms',
        'CPU ms each, created and resolved: server / store / load',
      ],
      [...lines, ['*target*', '≥ 2,000', '≥ 2,000', '', '']],
    ) +
    note(
      `${whole(count)} interactions, two requests each; then as many that are created first, answered.`,
    )
  )
}
