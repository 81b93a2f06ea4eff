/**
 * Determines the syntactic context of a position in an incomplete JSON or YAML text: the enclosing
 * objects and arrays, with the members of each.
 *
 * Invariant: the text is scanned once, without recursion, and need not be valid.
 */
import type { Language } from './located.ts'

/** An object or array around a position. */
export interface Level {
  /** The key of the member or item that contains the position. */
  key: string | undefined
  readonly isArray: boolean
  /**
   * The names of the members, each with the text of its value if this is known and a short scalar.
   * Members after the position are included.
   */
  readonly members: Map<string, string | undefined>
}
/** The syntactic context of a position. */
export interface Context {
  readonly kind: 'name' | 'value'
  /**
   * The levels from the outermost to the innermost. If `kind` is `value`, the `key` of the last
   * level is that of the value.
   */
  readonly levels: readonly Level[]
  /**
   * Offset at which the word at the position begins. An opening quotation mark is not part of it.
   */
  readonly from: number
  /** Whether the word has an opening quotation mark. */
  readonly quoted: boolean
}

interface Scanned extends Level {
  index: number
  expects: 'name' | 'value'
  name: string
  /** The column at which the members or items begin. Only used for YAML. */
  readonly column: number
}
const level = (isArray: boolean, column = 0): Scanned => ({
  isArray,
  column,
  key: isArray ? '0' : undefined,
  index: 0,
  expects: isArray ? 'value' : 'name',
  name: '',
  members: new Map(),
})
const snapshot = (
  stack: readonly Scanned[],
  kind: Context['kind'],
  from: number,
  quoted: boolean,
): Context => ({
  kind,
  from,
  quoted,
  // The maps are shared with the scan, so that it can later add the members after the position.
  levels: stack.map(({ key, isArray, members }) => ({ key, isArray, members })),
})

const TOKEN = /"(?:[^"\\\n]|\\.)*"?|[{}[\]:,]|[^\s{}[\]:,"]+/g
const plain = (token: string): string => token.replace(/^"|"$/g, '')

function jsonContext(text: string, position: number): Context | undefined {
  const stack: Scanned[] = []
  let found: Context | undefined
  let seen = false
  const take = (from: number, quoted: boolean): void => {
    seen = true
    const top = stack.at(-1)
    if (top) found = snapshot(stack, top.expects, from, quoted)
  }
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const end = index + token.length
    const isWord = !/^[{}[\]:,]$/.test(token)
    if (!seen && index >= position) take(position, false)
    const isClosed = token.length > 1 && token.startsWith('"') && token.endsWith('"')
    if (!seen && isWord && (isClosed ? position < end : position <= end))
      take(token.startsWith('"') ? index + 1 : index, token.startsWith('"'))
    const top = stack.at(-1)
    if (token === '{' || token === '[') stack.push(level(token === '['))
    else if (token === '}' || token === ']') stack.pop()
    else if (token === ':' && top && !top.isArray) {
      top.key = top.name
      top.members.set(top.name, undefined)
      top.expects = 'value'
    } else if (token === ',' && top) {
      top.expects = top.isArray ? 'value' : 'name'
      top.key = top.isArray ? String(++top.index) : undefined
    } else if (isWord && top && !top.isArray) {
      if (top.expects === 'name') top.name = plain(token)
      else if (top.key !== undefined && token.startsWith('"'))
        top.members.set(top.key, plain(token))
    }
  }
  if (!seen) take(position, false)
  return found
}

const KEY =
  /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#:,[\]{}&*!|>'"%@`-][^#:]*?|-[^\s#:][^#:]*?)\s*:(?=\s|$)/
const yamlPlain = (token: string): string => token.trim().replace(/^["']|["']$/g, '')

function yamlContext(text: string, position: number): Context | undefined {
  const stack: Scanned[] = []
  let found: Context | undefined
  let blockAbove: number | undefined
  let start = 0
  for (const line of text.split('\n')) {
    const here = position >= start && position <= start + line.length
    const indent = line.length - line.trimStart().length
    const isBlank = /^\s*(#|$)/.test(line)
    if (blockAbove !== undefined && (isBlank || indent > blockAbove)) {
      if (here) return undefined
      start += line.length + 1
      continue
    }
    blockAbove = undefined
    let column = indent
    let rest = line.slice(indent)
    const depth = here && isBlank ? position - start : column
    if (!isBlank || here) {
      if (here && isBlank) column = depth
      while (stack.length > 0 && (stack.at(-1)?.column ?? 0) > column) stack.pop()
      while (/^-(\s|$)/.test(rest)) {
        let top = stack.at(-1)
        if (!top?.isArray || top.column !== column) stack.push((top = level(true, column)))
        else top.key = String(++top.index)
        const gap = /^-\s*/.exec(rest)?.[0].length ?? 1
        column += gap
        rest = rest.slice(gap)
        while ((stack.at(-1)?.column ?? 0) > column) stack.pop()
      }
      const match = KEY.exec(rest)
      let top = stack.at(-1)
      if (top?.isArray && top.column === column && !/^\s*-/.test(line)) stack.pop()
      top = stack.at(-1)
      const isNew = !top || top.isArray || top.column < column
      const wordAt = start + column
      if (match) {
        if (isNew) stack.push((top = level(false, column)))
        const name = yamlPlain(match[1] ?? '')
        const value = rest
          .slice(match[0].length)
          .trim()
          .replace(/\s#.*$/, '')
        if (top) {
          top.key = name
          if (here) {
            const valueAt = start + line.length - rest.slice(match[0].length).trimStart().length
            const inValue = position > wordAt + match[0].length - 1
            if (!inValue) top.key = undefined
            found = inValue
              ? snapshot(stack, 'value', Math.min(valueAt, position), false)
              : snapshot(stack, 'name', wordAt, false)
            top.key = name
          }
          top.members.set(name, value === '' ? undefined : yamlPlain(value))
        }
        if (/^[|>]/.test(value)) blockAbove = column
      } else if (here) {
        const isItem = top?.isArray === true && /^\s*-/.test(line)
        // A word without a colon may be the start of a name, or an item of a list of scalars.
        if (isNew) stack.push((top = level(false, column)))
        if (top) top.key = undefined
        found = snapshot(stack, 'name', Math.min(wordAt, position), false)
        if (isItem && rest === '') found = snapshot(stack, 'name', position, false)
      }
    }
    start += line.length + 1
  }
  return found
}

/**
 * Returns the context of a position; undefined outside of every object or array of JSON, and in a
 * block scalar of YAML.
 */
export const contextAt = (
  text: string,
  position: number,
  language: Language,
): Context | undefined =>
  language === 'json' ? jsonContext(text, position) : yamlContext(text, position)
