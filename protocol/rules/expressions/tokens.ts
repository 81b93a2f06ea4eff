/**
 * Scanner for the tokens of an expression. The CEL parser defines the grammar. Two facts must be
 * known before parsing: the end of an interpolation, and the words that are operators. To find
 * both, the scanner skips string literals.
 *
 * Invariant: scanning never fails and always advances. Text that is not a token has the kind
 * `other`, and the parser rejects it.
 */
export interface Token {
  readonly kind: 'name' | 'number' | 'text' | 'punctuation' | 'other'
  readonly start: number
  readonly end: number
}

const NAME = /[A-Za-z_][A-Za-z0-9_]*/y
const NUMBER = /0[xX][0-9a-fA-F]+|\d+(\.\d+)?([eE][+-]?\d+)?/y
const PUNCTUATION = /&&|\|\||==|!=|<=|>=|[-+*/%<>!()[\]{}.,:?]/y
const QUOTE = /[bBrR]?("""|'''|"|')/y
const SPACE = /[ \t\r\n]*/y

const match = (pattern: RegExp, source: string, at: number): string | undefined => {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0]
}

/**
 * Returns the offset after the string literal whose content begins at `from`; undefined if the
 * literal is not closed.
 */
function closing(source: string, quote: string, from: number): number | undefined {
  for (let at = from; at < source.length; at++) {
    if (source[at] === '\\') at++
    else if (source.startsWith(quote, at)) return at + quote.length
  }
  return undefined
}

/** Returns the next token at or after an offset, or undefined at the end of the source. */
export function nextToken(source: string, from: number): Token | undefined {
  const start = from + (match(SPACE, source, from)?.length ?? 0)
  if (start >= source.length) return undefined
  const token = (kind: Token['kind'], end: number): Token => ({ kind, start, end })
  const quote = match(QUOTE, source, start)
  if (quote !== undefined) {
    const end = closing(source, quote.replace(/^[bBrR]/, ''), start + quote.length)
    return end === undefined ? token('other', source.length) : token('text', end)
  }
  const name = match(NAME, source, start)
  if (name !== undefined) return token('name', start + name.length)
  const number = match(NUMBER, source, start)
  if (number !== undefined) return token('number', start + number.length)
  const punctuation = match(PUNCTUATION, source, start)
  return punctuation === undefined
    ? token('other', start + 1)
    : token('punctuation', start + punctuation.length)
}

/**
 * Returns the offset of the `}}` that closes an interpolation whose expression begins at `from`, or
 * undefined if nothing closes it. Braces of object literals are counted. Braces in string literals
 * are ignored.
 */
export function closingBraces(source: string, from: number): number | undefined {
  let depth = 0
  for (let token = nextToken(source, from); token; token = nextToken(source, token.end)) {
    const text = source.slice(token.start, token.end)
    if (text === '{') depth++
    else if (text === '}' && depth > 0) depth--
    else if (text === '}') return source[token.end] === '}' ? token.start : undefined
  }
  return undefined
}
