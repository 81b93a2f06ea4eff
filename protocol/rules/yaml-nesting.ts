/**
 * A bound on the nesting of YAML documents, checked before parsing because YAML parsers recurse for
 * each level. The nesting is determined without recursion from the tokens of the `yaml` lexer. The
 * caller passes the tokens, so this module does not depend on the library.
 */

/** Maximum indentation in columns, which limits nesting by indentation. */
const MAX_INDENTATION = 400

/** The control token before the text of a scalar that is not quoted. */
const SCALAR = '\u001f'
/** Whether a token of the lexer is a control token, which has no text in the document. */
const isControl = (token: string): boolean => /^[\u0002\u0018\u001f]$/.test(token)

/**
 * Returns the offset at which the nesting of a document exceeds a number of levels; undefined if it
 * does not. Flow collections are counted by their brackets, and block collections by the indicators
 * in one line (`- - -`). Block collections that nest by indentation need at least one column for
 * each level, so `MAX_INDENTATION` limits them. In a flow collection, the indicators since the last
 * comma or bracket are counted, because the lexer recurses for consecutive indicators.
 */
export function nestedDeeperAt(tokens: Iterable<string>, levels: number): number | undefined {
  let flow = 0
  let inFlow = 0
  let inLine = 0
  let column = 0
  let offset = 0
  let isText = false
  for (const token of tokens) {
    if (isText) {
      if (token.includes('\n')) inLine = 0
    } else if (token === '[' || token === '{') {
      flow++
      inFlow = 0
    } else if (token === ']' || token === '}') {
      flow = Math.max(0, flow - 1)
      inFlow = 0
    } else if (token === ',') inFlow = 0
    else if (token === '-' || token === '?' || token === ':') {
      if (flow > 0) inFlow++
      else inLine++
    } else if (token.includes('\n')) inLine = 0
    else if (inLine === 0 && /^ +$/.test(token)) column = token.length
    if (flow + inFlow + inLine > levels || column > MAX_INDENTATION) return offset
    const isMark: boolean = !isText && isControl(token)
    if (!isMark) offset += token.length
    isText = isMark && token === SCALAR
  }
  return undefined
}
