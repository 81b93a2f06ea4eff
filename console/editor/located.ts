/**
 * Parses JSON and YAML with the position of every member, so that faults can be marked in the text.
 *
 * Invariant: no text causes an exception; in YAML, nesting and aliases are limited.
 */
import { jsonLanguage } from '@codemirror/lang-json'
import { formatYaml, readYaml } from './yaml.ts'

/** The languages of structured texts. */
export type Language = 'json' | 'yaml'
/** A part of a text: offsets in UTF-16 code units. */
export interface Range {
  readonly from: number
  readonly to: number
}
/** A fault of a text with its range. */
export interface TextFault extends Range {
  readonly message: string
}
/** The result of parsing a text: its value, or the fault of an invalid text. */
export type Located =
  | {
      readonly value: unknown
      /**
       * Returns the range of the member at a path such as `steps[0].config`. If it does not exist,
       * returns the range of the nearest existing member around it.
       */
      readonly rangeOf: (path: string) => Range
    }
  | { readonly fault: TextFault }

/** Splits a path such as `steps[0].config["a b"]` or `steps.0.config` into keys. */
export function keysOf(path: string): string[] {
  const keys: string[] = []
  const part = /\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.[\]]+)/gy
  for (let match = part.exec(path); match; match = part.exec(path)) {
    const [, index, quoted, name] = match
    if (quoted === undefined) keys.push(index ?? name ?? '')
    else {
      try {
        keys.push(String(JSON.parse(quoted)))
      } catch {
        return keys
      }
    }
  }
  return keys
}

type Node = ReturnType<typeof jsonLanguage.parser.parse>['topNode']
const isPunctuation = (node: Node): boolean => /^[[\]{}:,]$/.test(node.name)
const valueIn = (property: Node): Node | undefined => {
  const last = property.lastChild
  return last && last.name !== 'PropertyName' && !last.type.isError ? last : undefined
}
/** Returns the member of an object or array, with the range at which its faults are shown. */
function jsonMember(
  node: Node,
  key: string,
  text: string,
): { at: Range; inner?: Node } | undefined {
  let index = 0
  for (let child = node.firstChild; child; child = child.nextSibling) {
    if (isPunctuation(child) || child.type.isError) continue
    if (node.name === 'Array') {
      if (String(index++) === key) return { at: shownAt(child), inner: child }
    } else if (node.name === 'Object' && child.name === 'Property') {
      const name = child.firstChild
      if (!name || unquoted(text.slice(name.from, name.to)) !== key) continue
      const inner = valueIn(child)
      const isDeep = inner?.name === 'Object' || inner?.name === 'Array'
      return {
        at: isDeep || !inner ? { from: name.from, to: name.to } : shownAt(inner),
        ...(inner && { inner }),
      }
    }
  }
  return undefined
}
const shownAt = ({ name, from, to }: Node): Range =>
  name === 'Object' || name === 'Array' ? { from, to: from + 1 } : { from, to }
function unquoted(text: string): string {
  try {
    return String(JSON.parse(text))
  } catch {
    return text
  }
}

function readJson(text: string): Located {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { fault: { ...firstError(text), message: message.replace(/ \(line .*$/, '') } }
  }
  return {
    value,
    rangeOf: (path) => {
      let node = jsonLanguage.parser.parse(text).topNode.firstChild ?? undefined
      let found: Range = node ? shownAt(node) : { from: 0, to: text.length }
      for (const key of keysOf(path)) {
        const member = node && jsonMember(node, key, text)
        if (!member) break
        found = member.at
        node = member.inner
      }
      return found
    },
  }
}
function firstError(text: string): Range {
  let from: number | undefined
  jsonLanguage.parser.parse(text).iterate({
    enter: (node) => {
      if (from === undefined && node.type.isError) from = node.from
      return from === undefined
    },
  })
  const at = Math.min(from ?? 0, text.length)
  return { from: at, to: Math.min(text.length, at + 1) }
}

/** Parses a text. An empty text is a fault in JSON, and null in YAML. */
export const locate = (text: string, language: Language): Located =>
  language === 'json' ? readJson(text) : readYaml(text, keysOf)

/** Formats a value as text in a language. */
export const write = (value: unknown, language: Language): string =>
  language === 'json' ? JSON.stringify(value, undefined, 2) : formatYaml(value)

/**
 * Converts a text to the other language. Returns undefined if it cannot be parsed. YAML comments
 * are lost.
 */
export function converted(text: string, from: Language, to: Language): string | undefined {
  if (from === to) return text
  const read = locate(text, from)
  return 'value' in read ? write(read.value, to) : undefined
}
