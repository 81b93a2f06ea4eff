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

const DASH = /^-(?:\s+|$)/

const closeDeeper = (stack: Scanned[], column: number): void => {
  while ((stack.at(-1)?.column ?? 0) > column) stack.pop()
}
/**
 * Enters a line at its first column: closes the levels that have ended, and opens or continues the
 * lists whose items begin in the line.
 * @returns the text after the dashes of the items, and its column.
 */
function enterLine(
  stack: Scanned[],
  text: string,
  first: number,
): { readonly rest: string; readonly column: number } {
  let [rest, column] = [text, first]
  closeDeeper(stack, column)
  for (let dash = DASH.exec(rest); dash; dash = DASH.exec(rest)) {
    const top = stack.at(-1)
    if (top?.isArray && top.column === column) top.key = String(++top.index)
    else stack.push(level(true, column))
    column += dash[0].length
    rest = rest.slice(dash[0].length)
    closeDeeper(stack, column)
  }
  // The items of a list may have the same column as the members of the object that contains it.
  const top = stack.at(-1)
  if (!text.startsWith('-') && top?.isArray && top.column === column) stack.pop()
  return { rest, column }
}
/** Returns the object whose members begin at the column. Opens it if it is not open. */
function objectAt(stack: Scanned[], column: number): Scanned {
  const top = stack.at(-1)
  if (top && !top.isArray && top.column >= column) return top
  const opened = level(false, column)
  stack.push(opened)
  return opened
}

function yamlContext(text: string, position: number): Context | undefined {
  const stack: Scanned[] = []
  let found: Context | undefined
  /** The column of the member whose value is a block scalar, within the scalar. */
  let scalarOf: number | undefined
  let start = 0
  for (const line of text.split('\n')) {
    const lineStart = start
    start += line.length + 1
    const isHere = position >= lineStart && position < start
    const isBlank = /^\s*(#|$)/.test(line)
    const indent = line.length - line.trimStart().length
    if (scalarOf !== undefined && (isBlank || indent > scalarOf)) {
      if (isHere) return undefined
      continue
    }
    scalarOf = undefined
    if (isBlank && !isHere) continue
    const first = isBlank ? position - lineStart : indent
    const { rest, column } = enterLine(stack, line.slice(indent), first)
    const wordAt = lineStart + column
    const [named, key] = KEY.exec(rest) ?? []
    if (named !== undefined && key !== undefined) {
      const object = objectAt(stack, column)
      const after = rest.slice(named.length).trimStart()
      const value = after.trimEnd().replace(/\s#.*$/, '')
      object.key = yamlPlain(key)
      object.members.set(object.key, value === '' ? undefined : yamlPlain(value))
      if (/^[|>]/.test(value)) scalarOf = column
      if (isHere)
        found =
          position < wordAt + named.length
            ? nameContext(stack, object, wordAt)
            : snapshot(stack, 'value', Math.min(start - 1 - after.length, position), false)
    } else if (isHere)
      // A word without a colon may be the start of a name, or an item of a list of scalars.
      found = nameContext(stack, objectAt(stack, column), Math.min(wordAt, position))
  }
  return found
}
/** Returns the context of a name in an object. The object has no current member there. */
function nameContext(stack: readonly Scanned[], object: Scanned, from: number): Context {
  const { key } = object
  object.key = undefined
  const context = snapshot(stack, 'name', from, false)
  object.key = key
  return context
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
