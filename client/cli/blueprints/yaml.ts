/**
 * Reads YAML and JSON documents with the place of every node. JSON is parsed as YAML, because it
 * is a subset of YAML. A document with too many aliases, tokens or levels of nesting is reported as
 * a fault. `!file NAME` and `{"$file": "NAME"}` are replaced with the text of the file.
 *
 * Invariants:
 * Y1. Time is proportional to the size of the text after alias expansion, which is bounded.
 * Y2. Member names are unique, and `__proto__` is rejected.
 */
import {
  type Alias,
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type Scalar,
  visit,
  type YAMLMap,
} from 'yaml'
import { blueprintLimits } from '../../../protocol/blueprints/schema.ts'
import { nestedDeeperAt } from '../../../protocol/rules/yaml-nesting.ts'
import type { Environment } from '../mistake.ts'
import type { Fault, Located, Place, Source } from './located.ts'
import { expand } from './variables.ts'

/** Limits of one file. `nodes` and `characters` are counted after alias expansion. */
export const yamlLimits = {
  text: 4_194_304,
  tokens: 1_000_000,
  nesting: 64,
  nodes: 400_000,
  characters: blueprintLimits.body,
} as const
const FILE_TAG = '!file'
/** Maximum number of syntax errors that are reported for one file. */
const MAX_ERRORS = 20

export interface Reading {
  readonly source: Source
  readonly env: Environment
  /** Returns the text of a file that a document references, or its fault. */
  readonly file: (name: string) => { readonly text: string } | { readonly fault: string }
}
/** The documents of a file, and its faults. If there are faults, documents may be incomplete. */
interface Documents {
  readonly documents: readonly Located[]
  readonly faults: readonly Fault[]
}

/** Creates a source that maps offsets of a text to lines and columns. */
export function sourceOf(name: string, text: string): Source {
  let starts: number[] | undefined
  return {
    name,
    position: (offset) => {
      starts ??= [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
      let [low, high] = [0, starts.length - 1]
      while (low < high) {
        const middle = Math.ceil((low + high) / 2)
        if ((starts[middle] ?? 0) <= offset) low = middle
        else high = middle - 1
      }
      return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 }
    },
  }
}

class TooManyTokens extends Error {}
function* counted(tokens: Iterable<string>): Generator<string> {
  let count = 0
  for (const token of tokens) {
    if (++count > yamlLimits.tokens) throw new TooManyTokens()
    yield token
  }
}
/**
 * Checks a text against the limits. Returns a fault if the text exceeds one of them; otherwise
 * undefined.
 */
function excess(source: Source, text: string): Fault | undefined {
  const at = (offset: number, message: string): Fault => ({ place: { source, offset }, message })
  if (text.length > yamlLimits.text)
    return at(0, `has more than ${yamlLimits.text} characters; split it into several files`)
  try {
    const deep = nestedDeeperAt(counted(new Lexer().lex(text)), yamlLimits.nesting)
    return deep === undefined
      ? undefined
      : at(deep, `is nested deeper than ${yamlLimits.nesting} levels`)
  } catch (error) {
    if (!(error instanceof TooManyTokens)) throw error
    return at(0, `has more than ${yamlLimits.tokens} tokens; split it into several files`)
  }
}

/** Parses a text into its documents. Documents without content are omitted. */
export function readDocuments(text: string, reading: Reading): Documents {
  const { source } = reading
  const tooLarge = excess(source, text)
  if (tooLarge) return { documents: [], faults: [tooLarge] }
  const parsed = parseAllDocuments(text, {
    version: '1.2',
    schema: 'core',
    resolveKnownTags: false,
    stringKeys: true,
    // The library's check takes quadratic time, so `Reader` detects duplicate keys instead.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
    lineCounter: new LineCounter(),
    customTags: [{ tag: FILE_TAG, resolve: (name: string) => name }],
  })
  const faults: Fault[] = []
  const documents: Located[] = []
  for (const document of Array.isArray(parsed) ? parsed : []) {
    const found = [...document.errors, ...document.warnings].map(
      ({ pos, message }): Fault => ({
        place: { source, offset: pos[0] },
        message: `is not valid YAML: ${message.split('\n')[0]}`,
      }),
    )
    faults.push(...found.slice(0, MAX_ERRORS))
    if (found.length > 0 || !(document instanceof Document) || !document.contents) continue
    const located = new Reader(reading, document, faults).read()
    // A document without content, such as one with only comments, is null.
    if (located.value !== null) documents.push(located)
  }
  return { documents, faults }
}

/** Thrown when a document expands beyond the limits. The fault has already been reported. */
class Expanded extends Error {}

class Reader {
  readonly #reading: Reading
  readonly #document: Document
  readonly #faults: Fault[]
  /** Target nodes by alias. */
  readonly #targets = new Map<Alias, Node>()
  #nodes = 0
  #characters = 0
  constructor(reading: Reading, document: Document, faults: Fault[]) {
    this.#reading = reading
    this.#document = document
    this.#faults = faults
  }
  read(): Located {
    const anchors = new Map<string, Node>()
    visit(this.#document, {
      Node: (_, node) => {
        if (isAlias(node)) {
          const target = anchors.get(node.source)
          if (target) this.#targets.set(node, target)
        } else if (node.anchor !== undefined) anchors.set(node.anchor, node)
      },
    })
    const { contents } = this.#document
    const place = this.#place(contents as Node)
    try {
      return this.#located(contents as Node, place, 1)
    } catch (error) {
      if (error instanceof Expanded) return { value: null, place }
      throw error
    }
  }

  #place = (node: Node | null): Place => ({
    source: this.#reading.source,
    offset: node?.range?.[0] ?? 0,
  })
  #fault(place: Place, message: string): void {
    this.#faults.push({ place, message })
  }
  #count(place: Place, characters: number): void {
    this.#characters += characters
    if (++this.#nodes <= yamlLimits.nodes && this.#characters <= yamlLimits.characters) return
    this.#fault(place, 'expands to more than the limits of a file allow; use fewer aliases')
    throw new Expanded()
  }

  #located(node: Node | null, place: Place, depth: number): Located {
    if (depth > yamlLimits.nesting) {
      this.#fault(place, `is nested deeper than ${yamlLimits.nesting} levels`)
      return { value: null, place }
    }
    this.#count(place, 0)
    if (isAlias(node)) {
      const target = this.#targets.get(node)
      if (target) return this.#located(target, this.#place(target), depth + 1)
      this.#fault(place, `has no anchor &${node.source}`)
      return { value: null, place }
    }
    if (isMap(node)) return this.#object(node as YAMLMap<Node, Node | null>, place, depth)
    if (isSeq(node)) {
      const items = (node.items as Node[]).map((item) =>
        this.#located(item, this.#place(item), depth + 1),
      )
      return { value: items.map(({ value }) => value), place, items }
    }
    return { value: isScalar(node) ? this.#scalar(node, place) : null, place }
  }

  #object(node: YAMLMap<Node, Node | null>, place: Place, depth: number): Located {
    const members = new Map<string, { name: Place; located: Located }>()
    for (const { key, value } of node.items as Pair<Node, Node | null>[]) {
      const at = this.#place(key)
      const name = isScalar(key) ? key.value : undefined
      if (typeof name !== 'string') this.#fault(at, 'must be a plain text as the name of a member')
      else if (name === '__proto__') this.#fault(at, 'is not allowed as a name')
      else if (members.has(name)) {
        const { line, column } = this.#reading.source.position(members.get(name)?.name.offset ?? 0)
        this.#fault(at, `${name} is already given in line ${line}, column ${column}`)
      } else {
        this.#count(at, name.length)
        const located = this.#located(value, value ? this.#place(value) : at, depth + 1)
        members.set(name, { name: at, located })
      }
    }
    const file = members.size === 1 ? members.get('$file')?.located : undefined
    if (typeof file?.value === 'string') return { value: this.#text(file.value, file.place), place }
    return {
      value: Object.fromEntries([...members].map(([name, { located }]) => [name, located.value])),
      place,
      members,
    }
  }

  #scalar({ value, tag }: Scalar, place: Place): unknown {
    if (typeof value === 'number' && !Number.isFinite(value))
      this.#fault(place, 'must be a finite number')
    if (typeof value !== 'string') return value
    const missing = (name: string) =>
      this.#fault(
        place,
        `the environment variable ${name} is not set; ` +
          `set it, give a default as in \${${name}:-text}, or write $\${${name}} for the text`,
      )
    const text = expand(value, this.#reading.env, missing)
    this.#count(place, text.length)
    return tag === FILE_TAG ? this.#text(text, place) : text
  }
  #text(name: string, place: Place): string {
    const read = this.#reading.file(name)
    if ('text' in read) {
      this.#count(place, read.text.length)
      return read.text
    }
    this.#fault(place, read.fault)
    return ''
  }
}
