/**
 * Markdown headings and their anchors, which follow GitHub's rule. The documentation site uses the
 * same rule, so a link with an anchor leads to the same heading on both sites.
 */

/** Returns the anchor of a heading, without the number that is appended for a repeated heading. */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')

/** Returns the text of a heading as it is shown: without code marks, emphasis and link targets. */
const shown = (heading: string): string =>
  heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/`([^`]*)`/g, '$1')
    .replace(/\*+([^*]+)\*+/g, '$1')

/** Replaces each line of a fenced block with an empty line, so that line numbers stay the same. */
export function withoutFences(text: string): string {
  let fence = ''
  return text
    .split('\n')
    .map((line) => {
      const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? ''
      if (fence === '') {
        fence = mark
        return mark === '' ? line : ''
      }
      if (mark.startsWith(fence) && line.trim() === mark) fence = ''
      return ''
    })
    .join('\n')
}

/**
 * Returns the anchors of a document: those of its headings, and those of `<a id="…">` elements. The
 * anchor of a repeated heading ends with a number.
 */
export function anchorsIn(text: string): ReadonlySet<string> {
  const shownText = withoutFences(text)
  const anchors = new Set([...shownText.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id))
  for (const [, heading = ''] of shownText.matchAll(/^ {0,3}#{1,6} +(.*?)(?: +#+)? *$/gm)) {
    const anchor = anchorOf(shown(heading))
    let unique = anchor
    for (let n = 1; anchors.has(unique); n++) unique = `${anchor}-${n}`
    anchors.add(unique)
  }
  return anchors
}
