/**
 * Computes line-by-line differences between texts, in the unified format. Uses Myers' algorithm
 * ("An O(ND) Difference Algorithm") with a bound: texts that differ in too many lines are shown as
 * replaced.
 */

/** Maximum number of added and removed lines in an edit script. */
const MAX_EDITS = 1000
/** Number of unchanged lines shown around each change. */
const CONTEXT = 3

interface Line {
  readonly sign: ' ' | '-' | '+'
  readonly text: string
}

/**
 * Returns the shortest edit script between two lists of lines. If it has more than `MAX_EDITS`
 * edits, returns a script that replaces all lines.
 */
function edits(from: readonly string[], to: readonly string[]): Line[] {
  const trace: Map<number, number>[] = []
  const reached = new Map<number, number>([[1, 0]])
  const at = (map: ReadonlyMap<number, number>, diagonal: number) => map.get(diagonal) ?? -1
  const isDown = (map: ReadonlyMap<number, number>, diagonal: number, depth: number): boolean =>
    diagonal === -depth || (diagonal !== depth && at(map, diagonal - 1) < at(map, diagonal + 1))
  search: for (let depth = 0; ; depth++) {
    if (depth > MAX_EDITS)
      return [
        ...from.map((text): Line => ({ sign: '-', text })),
        ...to.map((text): Line => ({ sign: '+', text })),
      ]
    trace.push(new Map(reached))
    for (let diagonal = -depth; diagonal <= depth; diagonal += 2) {
      let x = isDown(reached, diagonal, depth)
        ? at(reached, diagonal + 1)
        : at(reached, diagonal - 1) + 1
      while (x < from.length && x - diagonal < to.length && from[x] === to[x - diagonal]) x++
      reached.set(diagonal, x)
      if (x >= from.length && x - diagonal >= to.length) break search
    }
  }
  const lines: Line[] = []
  let [x, y] = [from.length, to.length]
  for (let depth = trace.length - 1; depth >= 0; depth--) {
    const before = trace[depth] ?? new Map<number, number>()
    const diagonal = x - y
    const previous = isDown(before, diagonal, depth) ? diagonal + 1 : diagonal - 1
    const startX = depth === 0 ? 0 : at(before, previous)
    const startY = depth === 0 ? 0 : startX - previous
    while (x > startX && y > startY) {
      lines.push({ sign: ' ', text: from[--x] ?? '' })
      y--
    }
    if (depth === 0) break
    if (x === startX) lines.push({ sign: '+', text: to[--y] ?? '' })
    else lines.push({ sign: '-', text: from[--x] ?? '' })
  }
  return lines.reverse()
}

/** Returns the unified diff of two texts, without file headers; empty if the texts are equal. */
export function unifiedDiff(from: string, to: string): string[] {
  const all = edits(linesOf(from), linesOf(to))
  const isNear = (index: number): boolean =>
    all.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ sign }) => sign !== ' ')
  const result: string[] = []
  let [oldLine, newLine] = [1, 1]
  let hunk: Line[] = []
  const finish = () => {
    if (hunk.length > 0) {
      const count = (sign: Line['sign']) => hunk.filter((one) => one.sign !== sign).length
      const [before, after] = [count('+'), count('-')]
      const range = (next: number, lines: number) =>
        `${lines === 0 ? next - 1 : next - lines},${lines}`
      result.push(`@@ -${range(oldLine, before)} +${range(newLine, after)} @@`)
      result.push(...hunk.map(({ sign, text }) => `${sign}${text}`))
    }
    hunk = []
  }
  for (const [index, line] of all.entries()) {
    if (!isNear(index)) finish()
    if (line.sign !== '+') oldLine++
    if (line.sign !== '-') newLine++
    if (isNear(index)) hunk.push(line)
    else finish()
  }
  finish()
  return result
}
const linesOf = (text: string): string[] => (text === '' ? [] : text.split('\n'))
