/** Suggests the known name that is closest to a misspelled name. */

/**
 * Returns the number of edits (insert, delete, replace, swap neighbors) between two strings: the
 * optimal string alignment distance.
 */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      let edits = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits = Math.min(edits, (before[j - 2] ?? 0) + 1)
      row.push(edits)
    }
    before = last
    last = row
  }
  return last[b.length] ?? 0
}

/**
 * Returns the closest known name if it differs by at most three edits, and by at most one edit per
 * three characters of the name. One edit is always allowed. Returns undefined if no name is that
 * close.
 */
export function closest(text: string, known: readonly string[]): string | undefined {
  const word = text.toLowerCase().slice(0, 64)
  let best: { readonly name: string; readonly edits: number } | undefined
  for (const name of known) {
    const edits = distance(word, name.toLowerCase().slice(0, 64))
    if (
      edits <= Math.min(3, Math.max(1, Math.floor(name.length / 3))) &&
      (!best || edits < best.edits)
    )
      best = { name, edits }
  }
  return best?.name
}
