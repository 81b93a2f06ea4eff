/**
 * Parses YAML that users supply: the front matter of skills, and scripts of the scripted model. The
 * parser of `yaml` recurses for each level of nesting. The length and the nesting of a document are
 * therefore checked first.
 */
import { Lexer, parseDocument } from 'yaml'
import { nestedDeeperAt } from '../../protocol/rules/yaml-nesting.ts'

/** Maximum nesting depth of a document, not counting nesting by indentation. */
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
  if (nestedDeeperAt(new Lexer().lex(text), MAX_NESTING) !== undefined)
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
