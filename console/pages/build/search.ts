/** The search in lists that are loaded as a whole. */

/** Whether all words of a search occur in one of the texts. */
export function matchesText(search: string, texts: readonly string[]): boolean {
  const content = texts.join('\n').toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => content.includes(word))
}
