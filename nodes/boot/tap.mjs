/**
 * Reads a TAP stream (https://testanything.org): shows one line per file, shows each failure with
 * its diagnosis, and counts the results. Every assertion is counted. A test that contains other
 * test points is not counted itself, unless it fails although all of these points passed: after a
 * timeout, an exception or the death of its process. A comment that begins with `failed` belongs to
 * the diagnosis of the last failure.
 */

/** @typedef {{ passed: number, failed: number, skipped: number, files: number }} Result */

const POINT = /^(not )?ok\b(?: \d+)?(?: - )?(.*?)(?: # (skip|todo|time=)(.*))?$/i

/** Maximum number of failures that are kept, and of lines of each of them. */
const KEPT_FAILURES = 20
const KEPT_LINES = 40

/**
 * Creates a reader. `line` must be called with each line of the stream. `failures` receives the
 * first failures, each with its name and its diagnosis, so that they can be repeated at the end of
 * a long run.
 * @param {(line: string) => void} show receives each line of output
 * @returns {{ result: Result, failures: readonly string[][], line: (line: string) => void }}
 */
export function createReader(show) {
  const result = { passed: 0, failed: 0, skipped: 0, files: 0 }
  /**
   * Names of the open tests, by depth.
   * @type {string[]}
   */
  const names = []
  /**
   * For each depth, the number of failed test points (`not ok`) since the last point one level
   * above.
   * @type {number[]}
   */
  const failures = []
  /**
   * Depth of the last point or plan. If the next point has a lower depth, it is the result of a
   * test that contains other points.
   */
  let last = -1
  /** Whether a diagnosis may follow (`due`), is being read (`open`), or neither (`none`). */
  let block = 'none'
  /** Whether the last point is a failure, whose diagnosis is shown. */
  let shown = false
  /** @type {string[][]} */
  const kept = []
  /** @param {string} text the first line of a failure */
  const fail = (text) => {
    result.failed++
    if (kept.length < KEPT_FAILURES) kept.push([text])
  }
  /** @param {string} text a line of the diagnosis of the last failure */
  const diagnose = (text) => {
    show(text)
    const lines = kept[result.failed - 1]
    if (lines !== undefined && lines.length < KEPT_LINES) lines.push(text)
  }

  /**
   * @param {string} text
   * @param {number} depth
   */
  const point = (text, depth) => {
    const [, not, name = '', directive = '', detail = ''] = POINT.exec(text) ?? []
    const contains = last > depth
    const failedBelow = failures[depth + 1] ?? 0
    failures[depth + 1] = 0
    last = depth
    const excused = /skip|todo/i.test(directive)
    const counts = !contains || (not !== undefined && failedBelow === 0)
    shown = counts && not !== undefined && !excused
    if (shown) {
      const title = `✗ ${[...names.slice(0, depth), name].join(' › ')}`
      fail(title)
      if (depth > 0) show(title)
    } else if (counts) result[excused ? 'skipped' : 'passed']++
    if (not !== undefined && !excused) failures[depth] = (failures[depth] ?? 0) + 1
    block = 'due'
    if (depth > 0) return
    result.files++
    show(`${not === undefined ? '✓' : '✗'} ${name}${directive === 'time=' ? ` (${detail})` : ''}`)
  }
  return {
    result,
    failures: kept,
    line: (line) => {
      const text = line.trimStart()
      if (block === 'open') {
        if (shown) diagnose(line)
        if (text === '...') block = 'none'
      } else if (block === 'due' && text === '---') {
        block = 'open'
        if (shown) diagnose(line)
      } else {
        const depth = (line.length - text.length) / 4
        if (!Number.isInteger(depth)) return
        const opened = /^# Subtest: (.*)$/.exec(text)?.[1]
        if (opened !== undefined) names[depth] = opened
        else if (/^1\.\.\d+/.test(text)) last = Math.max(last, depth)
        else if (POINT.test(text)) point(text, depth)
        else if (text.startsWith('# failed ') && result.failed > 0) diagnose(text.slice(2))
        else if (text.startsWith('Bail out!')) {
          fail(text)
          show(text)
        }
      }
    },
  }
}

/**
 * Describes the failures of a run, for its end.
 * @param {readonly string[][]} failures the first ones, as a reader has kept them
 * @param {number} total number of all failures
 * @returns {string}
 */
export const describeFailures = (failures, total) =>
  [
    ...failures.map((lines) => lines.join('\n')),
    ...(total > failures.length ? [`… and ${total - failures.length} more, shown above.`] : []),
  ].join('\n')
