/** Ranks entries of the command palette for a typed text. */

/**
 * Returns the rank of an entry, from 0 (best) to 4. Returns undefined if the entry does not match.
 * 0: the label starts with the text. 1: a later word of the label starts with it. 2: the label
 * contains the text. 3: the label contains the characters of the text in order. 4: the label and
 * the hint together contain them in order.
 */
export function rankOf(typed: string, label: string, hint: string): number | undefined {
  const wanted = typed.trim().toLowerCase()
  const text = label.toLowerCase()
  if (text.startsWith(wanted)) return 0
  if (text.includes(` ${wanted}`)) return 1
  if (text.includes(wanted)) return 2
  if (isSubsequence(wanted, text)) return 3
  return isSubsequence(wanted, `${text} ${hint.toLowerCase()}`) ? 4 : undefined
}

/** Returns whether `text` contains the characters of `wanted` in order. Spaces are ignored. */
function isSubsequence(wanted: string, text: string): boolean {
  let at = 0
  for (const letter of wanted.replaceAll(' ', '')) {
    at = text.indexOf(letter, at)
    if (at < 0) return false
    at++
  }
  return true
}
