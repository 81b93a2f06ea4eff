/** Searches lists that have been loaded completely. */

/** Returns whether each word of a search occurs in at least one of the texts. */
export function matchesText(search: string, texts: readonly string[]): boolean {
  const content = texts.join('\n').toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => content.includes(word))
}
