/** Shortens texts at a maximum number of characters. */

/** Returns the first characters of a text, without half of a surrogate pair at the end. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text
  const last = text.charCodeAt(max - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? max - 1 : max)
}
