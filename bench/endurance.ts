/**
 * Measures whether throughput stays constant while one-step runs are started without a pause.
 * Figures are reported for each tenth of the runs.
 */

import { runOf, runsOf } from './load/work.ts'
import { startBaton } from './support/baton.ts'
import { costOf, cpuOfEach, inFlight, percentile, type Terms } from './support/measure.ts'
import { resident } from './support/processes.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'One-step runs, 500,000 of them: throughput and memory from the first to the last'

const BLOCKS = 10
const MIB = 2 ** 20

/** Runs the benchmark once and returns its table. */
export async function bench({ quick, say, profile }: Terms): Promise<string> {
  const size = quick ? 5000 : 50_000
  const server = await startBaton({ sync: 'always', profile })
  const lines: string[][] = []
  const rates: number[] = []
  try {
    const { work, stop } = await runsOf((name) => runOf(1, name), server, say)
    await inFlight(200, 3000, (i) => work(`warm-${i}`))
    for (let block = 1; block <= BLOCKS; block++) {
      const {
        result: times,
        seconds,
        cpu,
      } = await costOf(
        () => server.processes,
        () => inFlight(200, size, (i) => work(`b${block}-${i}`)),
      )
      const rate = size / seconds
      const each = cpuOfEach(cpu, size)
      rates.push(rate)
      const memory = {
        server: resident(server.processes.server[0] ?? 0) / MIB,
        store: resident(server.processes.store[0] ?? 0) / MIB,
      }
      say(
        `runs ${whole((block - 1) * size)} to ${whole(block * size)}: ${whole(rate)} done/s, ` +
          `server ${whole(memory.server)} MiB`,
      )
      lines.push([
        `${whole((block - 1) * size)}–${whole(block * size)}`,
        whole(rate),
        cell(ms(percentile(times, 0.5)), ms(percentile(times, 0.99))),
        cell(ms(each.server), ms(each.store), ms(each.load)),
        cell(whole(memory.server), whole(memory.store)),
      ])
    }
    stop()
  } finally {
    await server.stop()
  }
  const change = ((rates.at(-1) ?? 0) / (rates[0] ?? 1) - 1) * 100
  const last = [
    '*last against first*',
    `${change >= 0 ? '+' : '−'}${Math.abs(change).toFixed(1)} % *(target: falls by less than 10 %)*`,
    '',
    '',
    '',
  ]
  return (
    table(
      [
        'runs, fsync always, 200 in flight',
        'done/s',
        'p50 / p99 ms',
        'CPU ms per run: server / store / load',
        'resident MiB: server / store',
      ],
      [...lines, last],
    ) + note('One pass, whatever --times says, after 3,000 runs to warm up.')
  )
}
