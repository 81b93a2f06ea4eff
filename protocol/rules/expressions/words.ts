/**
 * Operators that authors write as words: `and or not`, and the infix forms `a contains b`, `a startsWith b`,
 * `a endsWith b`, `a matches b`, each also negated (`a not in b`). CEL has no such operators, so the source is rewritten
 * on tokens before it is parsed: an infix word takes the place, and thereby the precedence, of `in`.
 *
 * `not` binds weaker than comparisons: `not a == b` is `not (a == b)`. A word after a dot is a member name. `loop` is a name here
 * and a reserved word there, so it is spelled differently for the parser.
 */
import { nextToken, type Token } from './tokens.ts'

/** A relation that was written as a word. */
interface Relation {
  readonly word: string
  readonly negated: boolean
}
export interface Rewritten {
  /** The source in CEL. */
  readonly text: string
  /** For each `in` of the text, by its offset there, the relation it stands for. */
  readonly relations: ReadonlyMap<number, Relation>
  /** The offset in the author's source of an offset in the text. */
  readonly origin: (offset: number) => number
}

/** How the parser is told the name `loop`. */
export const LOOP = '__loop'
/** Infix words; `in` is CEL's own. */
const INFIX: ReadonlySet<string> = new Set(['in', 'contains', 'startsWith', 'endsWith', 'matches'])
const OPENING: ReadonlySet<string> = new Set(['(', '[', '{'])
const CLOSING: ReadonlySet<string> = new Set([')', ']', '}'])
/** What ends the operand of a `not`. */
const WEAK: ReadonlySet<string> = new Set(['and', 'or', '&&', '||', '?', ':', ','])

function tokensOf(source: string): Token[] {
  const tokens: Token[] = []
  for (let token = nextToken(source, 0); token; token = nextToken(source, token.end))
    tokens.push(token)
  return tokens
}

/** Rewrite a source to CEL. Never fails: what is wrong stays wrong, and the parser says so. */
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
