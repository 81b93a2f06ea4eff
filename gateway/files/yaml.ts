/**
 * Parses YAML that users supply: the front matter of skills, and scripts of the scripted model. The
 * parser of `yaml` recurses for each level of nesting, and takes a time for each token. The length,
 * the tokens and the nesting of a document are therefore checked first.
 *
 * Invariant: the time is linear in the length. The library compares each key of a map with all
 * others, and formats every error with its part of the text. Both options are switched off here.
 */
import { type Document, isScalar, Lexer, LineCounter, parseDocument, visit } from 'yaml'
import { nestedDeeperAt } from '../../protocol/rules/yaml-nesting.ts'

/** Maximum nesting depth of a document, not counting nesting by indentation. */
const MAX_NESTING = 64
/** Maximum number of tokens of a document. A line with a key and a value has up to ten. */
const MAX_TOKENS = 100_000
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
  const tokens = new Tokens(text)
  if (nestedDeeperAt(tokens, MAX_NESTING) !== undefined)
    return { fault: `is nested deeper than ${MAX_NESTING} levels` }
  if (tokens.count > MAX_TOKENS) return { fault: `has more than ${MAX_TOKENS} tokens` }
  const lineCounter = new LineCounter()
  const document = parseDocument(text, {
    schema: 'core',
    logLevel: 'error',
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter,
  })
  const error = document.errors[0] ?? repeatedKey(document)
  if (error) {
    const { line, col } = lineCounter.linePos(error.pos[0])
    return {
      fault: `is not YAML: ${error.message} at line ${line}, column ${col}`.slice(0, 300),
    }
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    return isCircular(value) ? { fault: 'has an alias inside its own anchor' } : { value }
  } catch {
    return { fault: 'expands too many aliases' }
  }
}

/** The tokens of a document, of which at most `MAX_TOKENS` are yielded. */
class Tokens implements Iterable<string> {
  /** The number of tokens that were read. */
  count = 0
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  *[Symbol.iterator](): Generator<string, void> {
    for (const token of new Lexer().lex(this.#text)) {
      if (++this.count > MAX_TOKENS) return
      yield token
    }
  }
}

interface Fault {
  readonly message: string
  /** Offsets in the document, of which the first is the place of the fault. */
  readonly pos: readonly [number, ...number[]]
}
/** Returns the first key that a map of the document has twice. */
function repeatedKey(document: Document.Parsed): Fault | undefined {
  let found: Fault | undefined
  visit(document, {
    Map: (_, { items }) => {
      const known = new Set<unknown>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        if (known.has(key.value)) {
          found = { message: 'Map keys must be unique', pos: [key.range?.[0] ?? 0] }
          return visit.BREAK
        }
        known.add(key.value)
      }
      return undefined
    },
  })
  return found
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
