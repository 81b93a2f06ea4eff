/**
 * Bounds of YAML documents before they are parsed: parsers of YAML recurse for each level of nesting.
 * The nesting is determined from the tokens of the lexer of `yaml`, without recursion. This module
 * takes the tokens, so that it does not depend on the library.
 */

/** Maximum indentation in columns, which limits nesting by indentation. */
const MAX_INDENTATION = 400

/** Tokens of the lexer that are not part of the text: the starts of documents and of scalars. */
const isControl = (token: string): boolean => /^[\u0002\u0018\u001f]$/.test(token)

/**
 * Returns the offset at which the nesting of a document exceeds a number of levels; undefined if it
 * does not. Flow collections are counted by their brackets, and block collections by the indicators
 * in one line (`- - -`). Block collections that nest by indentation need at least one column for
 * each level, so `MAX_INDENTATION` limits them.
 */
export function nestedDeeperAt(tokens: Iterable<string>, levels: number): number | undefined {
  let flow = 0
  let inLine = 0
  let column = 0
  let offset = 0
  for (const token of tokens) {
    if (token === '[' || token === '{') flow++
    else if (token === ']' || token === '}') flow = Math.max(0, flow - 1)
    else if (token === '-' || token === '?' || token === ':') inLine++
    else if (token.includes('\n')) inLine = 0
    else if (inLine === 0 && /^ +$/.test(token)) column = token.length
    if (flow + inLine > levels || column > MAX_INDENTATION) return offset
    if (!isControl(token)) offset += token.length
  }
  return undefined
}
