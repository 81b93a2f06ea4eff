/**
 * Reads a TAP stream (https://testanything.org): shows one line per file, shows each failure with
 * its diagnosis, and counts the results. Every assertion is counted. A test that contains other
 * test points is not counted itself, unless it fails although all of these points passed: after a
 * timeout, an exception or the death of its process.
 */

/** @typedef {{ passed: number, failed: number, skipped: number, files: number }} Result */

const POINT = /^(not )?ok\b(?: \d+)?(?: - )?(.*?)(?: # (skip|todo|time=)(.*))?$/i

/**
 * Creates a reader. `line` must be called with each line of the stream.
 * @param {(line: string) => void} show receives each line of output
 * @returns {{ result: Result, line: (line: string) => void }}
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
      result.failed++
      if (depth > 0) show(`✗ ${[...names.slice(0, depth), name].join(' › ')}`)
    } else if (counts) result[excused ? 'skipped' : 'passed']++
    if (not !== undefined && !excused) failures[depth] = (failures[depth] ?? 0) + 1
    block = 'due'
    if (depth > 0) return
    result.files++
    show(`${not === undefined ? '✓' : '✗'} ${name}${directive === 'time=' ? ` (${detail})` : ''}`)
  }
  return {
    result,
    line: (line) => {
      const text = line.trimStart()
      if (block === 'open') {
        if (shown) show(line)
        if (text === '...') block = 'none'
      } else if (block === 'due' && text === '---') {
        block = 'open'
        if (shown) show(line)
      } else {
        const depth = (line.length - text.length) / 4
        if (!Number.isInteger(depth)) return
        const opened = /^# Subtest: (.*)$/.exec(text)?.[1]
        if (opened !== undefined) names[depth] = opened
        else if (/^1\.\.\d+/.test(text)) last = Math.max(last, depth)
        else if (POINT.test(text)) point(text, depth)
        else if (text.startsWith('Bail out!')) {
          result.failed++
          show(text)
        }
      }
    },
  }
}
