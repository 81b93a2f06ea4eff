/**
 * Measures the processor time of tests, for `npm test -- --cpu`. Unlike the duration, the processor
 * time depends very little on other load on the machine.
 */
import { readFileSync } from 'node:fs'

/** Environment variable that makes a test process report its processor time. */
export const CPU_ENV = 'BATON_TEST_CPU'
/** Clock ticks per second in /proc, on every Linux that Node.js supports. */
const TICKS_PER_SECOND = 100
/** Position of `cutime` among the fields of /proc/self/stat that follow the name of the program. */
const CHILD_USER_TIME = 13
/** Matches the line that `cpuLine` returns. */
const LINE = /^ *# cpu (\S+) ([\d.]+) ([\d.]+) ([\d.]+)$/

/** @typedef {{ readonly own: number, readonly children: number }} CpuTime in seconds */

/**
 * Returns the processor time, user and system, that this process and its ended children have used.
 * On systems without /proc, the children count as 0.
 * @returns {CpuTime}
 */
export function cpuTime() {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1e6
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = Number(fields[CHILD_USER_TIME]) + Number(fields[CHILD_USER_TIME + 1])
    return { own, children: ticks / TICKS_PER_SECOND }
  } catch {
    return { own, children: 0 }
  }
}

/**
 * Returns a line of TAP output with the processor time of a file.
 * @param {string} file
 * @param {CpuTime} began before the file was loaded
 * @param {CpuTime} loaded when all of its modules were loaded
 * @param {CpuTime} ended after its last teardown
 */
export const cpuLine = (file, began, loaded, ended) =>
  `# cpu ${file} ${(loaded.own - began.own).toFixed(2)} ${(ended.own - loaded.own).toFixed(2)} ${(
    ended.children - began.children
  ).toFixed(2)}`

/**
 * Collects the lines of `cpuLine` from the output of test processes.
 * @returns {{ add: (line: string) => void, table: () => string }} `table` returns a table with a
 *   row per file, the most expensive first. Its columns are in seconds: total, loading modules, the
 *   rest, child processes
 */
export function createCpuTable() {
  /** @type {{ file: string, load: number, run: number, children: number, total: number }[]} */
  const rows = []
  return {
    add: (line) => {
      const [, file = '', load = 0, run = 0, children = 0] = LINE.exec(line) ?? []
      const [a, b, c] = [Number(load), Number(run), Number(children)]
      if (file !== '') rows.push({ file, load: a, run: b, children: c, total: a + b + c })
    },
    table: () => {
      const sum = { file: 'all files', load: 0, run: 0, children: 0, total: 0 }
      for (const { load, run, children, total } of rows) {
        sum.load += load
        sum.run += run
        sum.children += children
        sum.total += total
      }
      const cells = (/** @type {typeof sum} */ { total, load, run, children }) =>
        [total, load, run, children].map((one) => one.toFixed(1).padStart(9)).join('')
      return [
        'processor time in seconds',
        `${['total', 'loading', 'tests', 'children'].map((name) => name.padStart(9)).join('')}  file`,
        ...[sum, ...rows.sort((a, b) => b.total - a.total)].map(
          (row) => `${cells(row)}  ${row.file}`,
        ),
      ].join('\n')
    },
  }
}
