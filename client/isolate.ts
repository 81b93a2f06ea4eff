/**
 * Prevents a user's text in a sentence from changing the order of the sentence by its writing
 * direction. The text is put between Unicode isolate characters (UAX #9). Uses no Node modules.
 */

/** Characters that control the direction of text, except isolates. */
const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e]/g
const ISOLATES = /[\u2066-\u2069]/g
const ASCII = /^[\x20-\x7e]*$/

/** Returns whether the isolates in a text are balanced. */
function isBalanced(text: string): boolean {
  let depth = 0
  for (const [sign] of text.matchAll(ISOLATES)) {
    depth += sign === '\u2069' ? -1 : 1
    if (depth < 0) return false
  }
  return depth === 0
}

/**
 * Wraps a user's text in isolate characters, so that its direction does not affect the sentence
 * around it. Text that has an element for itself does not need it, if the element isolates its
 * content. In the console, `messages` isolates the values in sentences.
 */
export function isolate(text: string): string {
  if (ASCII.test(text)) return text
  const plain = text.replace(CONTROLS, '')
  return `\u2068${isBalanced(plain) ? plain : plain.replace(ISOLATES, '')}\u2069`
}
