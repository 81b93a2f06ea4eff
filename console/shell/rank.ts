/** How well an entry of the command palette fits what was typed. */

/**
 * Returns the rank of an entry; the smallest fits best. 0: the label begins with the text, 1: a word
 * of it does, 2: it contains the text, 3: its characters occur in the label in their order, 4: they do
 * so in the label and the hint together. Undefined: it does not fit.
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

/** Returns whether the characters of one text occur in another in their order. */
function isSubsequence(wanted: string, text: string): boolean {
  let at = 0
  for (const letter of wanted.replaceAll(' ', '')) {
    at = text.indexOf(letter, at)
    if (at < 0) return false
    at++
  }
  return true
}
