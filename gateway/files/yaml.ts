/**
 * YAML that users supply: the front matter of skills, and scripts of the scripted model. The parser recurses with the nesting
 * of a document, so length and nesting are bounded on its tokens, which are found without recursion, before it sees the text.
 */
import { Lexer, parseDocument } from 'yaml'

/** Levels of nesting that a document may have. */
const MAX_NESTING = 64
/** Times that an alias may be expanded: anchors may be used, but not to make much out of little. */
const MAX_ALIASES = 50

/** Read a document. @param longest characters it may have. `fault` completes a sentence: "its front matter …". */
export function readYaml(
  text: string,
  longest: number,
): { readonly value: unknown } | { readonly fault: string } {
  if (text.length > longest) return { fault: `has more than ${longest} characters` }
  if (isNestedDeeper(text, MAX_NESTING))
    return { fault: `is nested deeper than ${MAX_NESTING} levels` }
  const document = parseDocument(text, { schema: 'core', uniqueKeys: true, logLevel: 'error' })
  const [error] = document.errors
  if (error) return { fault: `is not YAML: ${error.message.split('\n')[0] ?? ''}`.slice(0, 300) }
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    return isCircular(value) ? { fault: 'has an alias inside what it stands for' } : { value }
  } catch {
    return { fault: 'refers to itself too often' }
  }
}

/** Whether a value contains itself: an alias inside its own anchor makes such a value, and no reader of values expects one. */
function isCircular(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (above.includes(value)) return true
  const inner = [...above, value]
  return Object.values(value).some((member) => isCircular(member, inner))
}

/**
 * Whether a document nests deeper than so many levels. Flow collections are counted by their brackets. Block collections
 * nest by the indicators of one line (`- - -`) and by indentation, of which every level takes a column at least.
 */
function isNestedDeeper(text: string, levels: number): boolean {
  let flow = 0
  let inLine = 0
  let column = 0
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') flow++
    else if (token === ']' || token === '}') flow = Math.max(0, flow - 1)
    else if (token === '-' || token === '?' || token === ':') inLine++
    else if (token.includes('\n')) inLine = 0
    else if (inLine === 0 && /^ +$/.test(token)) column = token.length
    if (flow + inLine > levels || column > MAX_INDENTATION) return true
  }
  return false
}
/** Columns of indentation; nesting by indentation alone is bounded by it. */
const MAX_INDENTATION = 400
