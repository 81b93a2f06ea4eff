/**
 * `baton simulate`: runs the engine once per seed in a simulated environment with faults, until all
 * seeds have run or too many have failed. It uses one process per core by default.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { sourceArguments } from './child.ts'
import { MAX_SEED, wholeNumber } from './whole-number.ts'

const module = fileURLToPath(new URL('../../test/simulation/process.ts', import.meta.url))
interface Report {
  readonly failures: readonly string[]
  readonly entries: number
  readonly time: number
}

/** Number of seeds that a process receives at a time. */
const CHUNK = 50
/** Number of seeds between two progress lines. */
const SEEDS_PER_LINE = 1000

/** The options of the command, as texts. */
interface Given {
  readonly seeds: string
  readonly from: string
  readonly failures: string
  readonly lines: string
  readonly jobs?: string
}

/**
 * Simulates `seeds` consecutive seeds, starting with `from`. The exit code is 0 when all passed.
 * @throws StartFault when an option is not a number in its range.
 */
export async function runSimulations(given: Given): Promise<void> {
  const started = performance.now()
  const number = (name: string, text: string, low: number, high: number): number =>
    wholeNumber('simulate', name, text, low, high)
  const first = number('from', given.from, 0, MAX_SEED)
  const all = number('seeds', given.seeds, 1, 1_000_000_000)
  const most = number('failures', given.failures, 1, 1_000_000_000)
  const lines = number('lines', given.lines, 0, 1_000_000)
  const jobs = number('jobs', given.jobs ?? String(availableParallelism()), 1, 10_000)
  const say = (line: string) => void process.stdout.write(`${line}\n`)
  let [next, done, failed, entries, time] = [first, 0, 0, 0, 0]
  const work = async (child: ChildProcess): Promise<void> => {
    const gone = once(child, 'exit').then(([code]) => {
      throw new Error(`a simulator process exited (${code})`)
    })
    gone.catch(() => {})
    while (next < first + all && failed < most) {
      const part = Math.min(CHUNK, first + all - next)
      const answer = once(child, 'message')
      child.send({ from: next, seeds: part, most: most - failed, lines })
      next += part
      const [report] = (await Promise.race([answer, gone])) as [Report]
      failed += report.failures.length
      entries += report.entries
      time += report.time
      for (const text of report.failures) say(text)
      if (Math.floor((done + part) / SEEDS_PER_LINE) > Math.floor(done / SEEDS_PER_LINE))
        say(`${done + part} seeds, ${entries} entries, ${Math.round(time / 1000)} s simulated`)
      done += part
    }
  }
  const width = Math.min(jobs, Math.ceil(all / CHUNK))
  const children = Array.from({ length: width }, () =>
    fork(module, { execArgv: [...sourceArguments(module).slice(0, -1), '--single-threaded-gc'] }),
  )
  try {
    await Promise.all(children.map(work))
  } finally {
    for (const child of children) child.disconnect()
  }
  say(
    `${failed === 0 ? `${all} seeds from ${first} passed` : `${failed} failed`} in ` +
      `${Math.round((performance.now() - started) / 1000)} s`,
  )
  process.exitCode = failed === 0 ? 0 : 1
}
