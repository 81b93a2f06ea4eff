/**
 * Parses YAML that users supply: the front matter of skills, and scripts of the scripted model. The
 * parser of `yaml` recurses for each level of nesting. The length and the nesting of a document are
 * therefore checked first. The nesting is determined from the tokens, without recursion.
 */
import { Lexer, parseDocument } from 'yaml'

/** Maximum nesting depth of a document, apart from nesting by indentation. */
const MAX_NESTING = 64
/** Maximum number of alias expansions, so that a small document cannot expand to a huge value. */
const MAX_ALIASES = 50

/**
 * Parses a document.
 * @param longest maximum length in characters.
 * @returns the value, or a fault that completes a sentence such as "its front matter …".
 */
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
    return isCircular(value) ? { fault: 'has an alias inside its own anchor' } : { value }
  } catch {
    return { fault: 'expands too many aliases' }
  }
}

/**
 * Returns whether a value contains itself. An alias inside its own anchor creates such a value, and
 * code that traverses values does not expect one.
 */
function isCircular(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (above.includes(value)) return true
  const inner = [...above, value]
  return Object.values(value).some((member) => isCircular(member, inner))
}

/**
 * Returns whether the nesting of a document exceeds a number of levels. Flow collections are
 * counted by their brackets, and block collections by the indicators in one line (`- - -`). Block
 * collections that nest by indentation need at least one column for each level, so
 * `MAX_INDENTATION` limits them.
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
/** Maximum indentation in columns, which limits nesting by indentation. */
const MAX_INDENTATION = 400
