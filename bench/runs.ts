/**
 * Claim: a run, from an HTTP request through a leased worker to its end on an event stream. Beside it, in the same run, a
 * BullMQ job on Redis. Each server, the load and the worker share this machine.
 */
import { runOfOneStep, startBaton } from './baton.ts'
import { load, medians, table, type Measured } from './measure.ts'
import { bullmq, bullmqMissing } from './peers.ts'

const COUNTS = { count: 4000, idle: 200 }

async function baton(sync: string): Promise<Measured> {
  const bench = await startBaton(sync)
  const { work, stop } = await runOfOneStep(bench)
  try {
    return await load(work, COUNTS)
  } finally {
    stop()
    await bench.stop()
  }
}

/** Run the benchmark. @param times how often each; medians are shown. @param say progress. @returns the table. */
export async function bench(times: number, say: (line: string) => void): Promise<string> {
  const rows: [string, () => Promise<Measured>][] = [['Baton, fsync always', () => baton('always')], ['Baton, lazy sync (2m)', () => baton('2m')]]
  const absent = bullmqMissing()
  if (absent) say(absent)
  else rows.push(['BullMQ 5, Redis appendfsync always', () => bullmq('always', COUNTS)], ['BullMQ 5, Redis appendfsync everysec', () => bullmq('everysec', COUNTS)])
  const measured = new Map<string, Measured[]>(rows.map(([name]) => [name, []]))
  // Turn by turn, so that a slow minute of the machine meets everybody.
  for (let i = 0; i < times; i++) for (const [name, run] of rows) {
    const once = await run()
    measured.get(name)?.push(once)
    say(`${name}, ${i + 1} of ${times}: ${Math.round(once.throughput)} done/s, idle start → done p50 ${once.done_p50.toFixed(2)} ms`)
  }
  return table([...measured].map(([name, runs]) => [name, medians(runs)]))
}
