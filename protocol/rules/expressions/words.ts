/**
 * Operators that are words: `and or not`, and the infix forms `a contains b`, `a startsWith b`,
 * `a endsWith b`, `a matches b`. These forms and `a in b` can be negated (`a not in b`). CEL has
 * only `in`, so the tokens are rewritten before parsing: `in` replaces an infix word, which thus
 * has the precedence of `in`.
 *
 * `not` has a lower precedence than comparisons: `not a == b` means `not (a == b)`. A word after a
 * dot is a field name. `loop` is an ordinary name in expressions but a reserved word in CEL, so
 * another name replaces it for the parser.
 */
import { nextToken, type Token } from './tokens.ts'

interface Relation {
  readonly word: string
  readonly negated: boolean
}
export interface Rewritten {
  /** The rewritten source, in CEL. */
  readonly text: string
  /** The relation that each `in` in the text represents, by the offset of the `in`. */
  readonly relations: ReadonlyMap<number, Relation>
  /** Maps an offset in the rewritten text to the offset in the original source. */
  readonly origin: (offset: number) => number
}

/** The name that replaces `loop` for the parser. */
export const LOOP = '__loop'
/** Words that are infix operators. CEL itself has only `in`. */
const INFIX: ReadonlySet<string> = new Set(['in', 'contains', 'startsWith', 'endsWith', 'matches'])
const OPENING: ReadonlySet<string> = new Set(['(', '[', '{'])
const CLOSING: ReadonlySet<string> = new Set([')', ']', '}'])
/** Tokens that end the operand of a `not`, in addition to closing brackets. */
const WEAK: ReadonlySet<string> = new Set(['and', 'or', '&&', '||', '?', ':', ','])

function tokensOf(source: string): Token[] {
  const tokens: Token[] = []
  for (let token = nextToken(source, 0); token; token = nextToken(source, token.end))
    tokens.push(token)
  return tokens
}

/**
 * Rewrites a source to CEL. Never fails: invalid input stays invalid, and the parser rejects it.
 */
export function rewriteWords(source: string): Rewritten {
  const tokens = tokensOf(source)
  const relations = new Map<number, Relation>()
  const starts: number[] = []
  const sources: number[] = []
  let text = ''
  const put = (part: string, from: number) => {
    starts.push(text.length)
    sources.push(from)
    text += part
  }
  const pending = [0]
  const settle = (from: number) => {
    put(')'.repeat(pending.at(-1) ?? 0), from)
    pending[pending.length - 1] = 0
  }
  let operand = false
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as Token
    const word = source.slice(token.start, token.end)
    const member = text.endsWith('.')
    const following = tokens[i + 1]
    const next = following && source.slice(following.start, following.end)
    const negated = word === 'not' && operand && next !== undefined && INFIX.has(next)
    const relation = negated ? next : word
    if (
      !member &&
      (CLOSING.has(word) || (WEAK.has(word) && (operand || token.kind === 'punctuation')))
    )
      settle(token.start)
    if (!member && token.kind === 'name' && operand && (word === 'and' || word === 'or')) {
      put(word === 'and' ? ' && ' : ' || ', token.start)
      operand = false
    } else if (!member && token.kind === 'name' && operand && INFIX.has(relation)) {
      put(' ', token.start)
      relations.set(text.length, { word: relation, negated })
      put('in ', token.start)
      operand = false
      if (negated) i++
    } else if (!member && word === 'not' && !operand) {
      put('!(', token.start)
      pending[pending.length - 1] = (pending.at(-1) ?? 0) + 1
    } else {
      if (OPENING.has(word)) pending.push(0)
      if (CLOSING.has(word) && pending.length > 1) pending.pop()
      const glued = word === '.' || member || text === ''
      const spelled = !member && word === 'loop' && token.kind === 'name' ? LOOP : word
      put(glued ? spelled : ` ${spelled}`, glued ? token.start : token.start - 1)
      operand =
        token.kind === 'name' ||
        token.kind === 'number' ||
        token.kind === 'text' ||
        CLOSING.has(word)
    }
  }
  settle(source.length)
  const origin = (offset: number) => {
    let i = starts.length - 1
    while (i > 0 && (starts[i] ?? 0) > offset) i--
    return Math.max(0, Math.min((sources[i] ?? 0) + offset - (starts[i] ?? 0), source.length))
  }
  return { text, relations, origin }
}
