/**
 * Parses and formats YAML in the browser. The parser recurses for each level of nesting, so nesting
 * is limited before parsing, and aliases before their expansion.
 */
import { isMap, isScalar, isSeq, Lexer, type Node, parseDocument, stringify } from 'yaml'
import { nestedDeeperAt } from '../../protocol/rules/yaml-nesting.ts'
import type { Located, Range } from './located.ts'

/** Maximum nesting of a document in levels. */
const MAX_NESTING = 64
/** Maximum number of YAML aliases in a document. */
const MAX_ALIASES = 50

const rangeOf = (node: unknown): Range | undefined => {
  const range = (node as Node | null)?.range
  return range ? { from: range[0], to: range[1] } : undefined
}
/** Returns the member of a map or sequence, with the range at which its faults are shown. */
function memberOf(node: unknown, key: string): { at?: Range; inner: unknown } | undefined {
  if (isSeq(node)) {
    const inner = node.items[Number(key)]
    const at = rangeOf(inner)
    return inner === undefined ? undefined : { inner, ...(at && { at: firstOf(inner, at) }) }
  }
  if (!isMap(node)) return undefined
  const pair = node.items.find(({ key: name }) => isScalar(name) && String(name.value) === key)
  if (!pair) return undefined
  const at = isMap(pair.value) || isSeq(pair.value) ? rangeOf(pair.key) : rangeOf(pair.value)
  const shown = at && at.to > at.from ? at : rangeOf(pair.key)
  return { inner: pair.value, ...(shown && { at: shown }) }
}
const firstOf = (node: unknown, at: Range): Range =>
  isMap(node) || isSeq(node) ? { from: at.from, to: at.from + 1 } : at

/** Parses YAML 1.2. `keysOf` splits the path of a fault. */
export function readYaml(text: string, keysOf: (path: string) => readonly string[]): Located {
  const at = nestedDeeperAt(new Lexer().lex(text), MAX_NESTING)
  if (at !== undefined)
    return {
      fault: { from: at, to: at + 1, message: `is nested deeper than ${MAX_NESTING} levels` },
    }
  const document = parseDocument(text, { schema: 'core', uniqueKeys: true, logLevel: 'error' })
  const [error] = document.errors
  if (error) {
    const from = Math.min(error.pos[0], text.length)
    const to = Math.max(from, Math.min(error.pos[1], text.length))
    return { fault: { from, to, message: error.message.split('\n')[0] ?? '' } }
  }
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES })
    JSON.stringify(value)
  } catch {
    return { fault: { from: 0, to: text.length, message: 'expands too many aliases' } }
  }
  return {
    value,
    rangeOf: (path) => {
      let node: unknown = document.contents
      const from = rangeOf(node)?.from ?? 0
      let found: Range = { from, to: Math.min(from + 1, text.length) }
      for (const key of keysOf(path)) {
        const member = memberOf(node, key)
        if (!member) break
        found = member.at ?? found
        node = member.inner
      }
      return found
    },
  }
}

/** Formats a value as YAML, with long texts as blocks. */
export const formatYaml = (value: unknown): string =>
  stringify(value, { lineWidth: 100, aliasDuplicateObjects: false })
