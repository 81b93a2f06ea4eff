/**
 * Validation of the JSON Schemas in requests, so that every accepted schema can be applied later. A
 * valid schema is well-formed and within bounds, and its patterns run in linear time. Its
 * references lead only to parts of itself, and form no cycle of schemas for the same value.
 */
import type { FieldError } from '../../errors.ts'
import { type Budget, ExpressionError } from '../expressions/values.ts'
import { isJsonObject } from '../json-object.ts'
import { compilePattern, ECMASCRIPT } from '../regex/pattern.ts'
import { below } from '../workflow-check/path.ts'
import { resolveReference } from './reference.ts'

/** Maximum length of a schema as JSON, in UTF-16 units. */
const MAX_LENGTH = 32_768
/** Maximum nesting of a schema in levels. */
const MAX_NESTING = 32
/**
 * Maximum total length of all patterns of a schema in UTF-16 units, which bounds the total number
 * of their instructions.
 */
const MAX_PATTERNS_LENGTH = 8192
/** Maximum number of reported faults of a schema. */
const MAX_FAULTS = 20
const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const

type Shape =
  | 'schema'
  | 'schemas'
  | 'schemas or schema'
  | 'schemas by name'
  | 'dependencies'
  | 'names'
  | 'names by name'
  | 'count'
  | 'number'
  | 'number or flag'
  | 'flag'
  | 'text'
  | 'list'
  | 'type'
  | 'pattern'
  | 'patterns'
  | 'reference'
const shapes: Readonly<Record<string, Shape>> = {
  $ref: 'reference',
  $dynamicRef: 'reference',
  $recursiveRef: 'reference',
  $anchor: 'text',
  $dynamicAnchor: 'text',
  $schema: 'text',
  $comment: 'text',
  $defs: 'schemas by name',
  definitions: 'schemas by name',
  title: 'text',
  description: 'text',
  type: 'type',
  enum: 'list',
  examples: 'list',
  allOf: 'schemas',
  anyOf: 'schemas',
  oneOf: 'schemas',
  not: 'schema',
  if: 'schema',
  then: 'schema',
  else: 'schema',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number or flag',
  exclusiveMaximum: 'number or flag',
  multipleOf: 'number',
  minLength: 'count',
  maxLength: 'count',
  pattern: 'pattern',
  format: 'text',
  minItems: 'count',
  maxItems: 'count',
  uniqueItems: 'flag',
  prefixItems: 'schemas',
  items: 'schemas or schema',
  additionalItems: 'schema',
  unevaluatedItems: 'schema',
  contains: 'schema',
  minContains: 'count',
  maxContains: 'count',
  minProperties: 'count',
  maxProperties: 'count',
  required: 'names',
  properties: 'schemas by name',
  patternProperties: 'patterns',
  additionalProperties: 'schema',
  unevaluatedProperties: 'schema',
  propertyNames: 'schema',
  dependentRequired: 'names by name',
  dependentSchemas: 'schemas by name',
  dependencies: 'dependencies',
}
/** Keywords whose subschemas apply to the same value as the schema that contains them. */
const sameValue: ReadonlySet<string> = new Set([
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
  'dependentSchemas',
  'dependencies',
])

const isNames = (given: unknown): boolean =>
  Array.isArray(given) && given.every((name) => typeof name === 'string')
const isCount = (given: unknown): boolean => Number.isInteger(given) && Number(given) >= 0
/**
 * The forms of keyword values that a simple test can check, each with the test and the fault
 * message.
 */
const plain: Partial<Record<Shape, readonly [test: (given: unknown) => boolean, message: string]>> =
  {
    names: [isNames, 'must be a list of names'],
    'names by name': [
      (given) => isJsonObject(given) && Object.values(given).every(isNames),
      'must be an object of lists of names',
    ],
    count: [isCount, 'must be a whole number from 0'],
    number: [(given) => typeof given === 'number', 'must be a number'],
    'number or flag': [
      (given) => typeof given === 'number' || typeof given === 'boolean',
      'must be a number',
    ],
    flag: [(given) => typeof given === 'boolean', 'must be true or false'],
    text: [(given) => typeof given === 'string', 'must be a text'],
    list: [Array.isArray, 'must be a list'],
    type: [
      (given) =>
        (Array.isArray(given) ? given : [given]).every((type) =>
          (TYPES as readonly unknown[]).includes(type),
        ),
      'is not a type',
    ],
  }

/** Rules that depend on the field that contains the schema. */
export interface SchemaRules {
  /** Keywords that the field does not accept. */
  readonly refused?: ReadonlySet<string>
}

class Reading {
  readonly faults: FieldError[] = []
  readonly #document: unknown
  readonly #refused: ReadonlySet<string>
  readonly #budget: Budget = { left: 1_000_000 }
  #patterns = 0

  constructor(document: unknown, { refused = new Set() }: SchemaRules) {
    this.#document = document
    this.#refused = refused
  }

  schema(schema: unknown, path: string, depth: number): void {
    if (typeof schema === 'boolean' || this.faults.length >= MAX_FAULTS) return
    if (!isJsonObject(schema)) return void this.#fault(path, 'must be a schema')
    if (depth > MAX_NESTING)
      return void this.#fault(path, `is nested deeper than ${MAX_NESTING} levels`)
    for (const [name, given] of Object.entries(schema)) {
      const field = below(path, name)
      const shape = Object.hasOwn(shapes, name) ? shapes[name] : undefined
      if (this.#refused.has(name)) this.#fault(field, 'is not supported here')
      else if (name === '$id' && depth > 0 && Object.hasOwn(schema, '$id'))
        this.#fault(field, 'is only supported at the root')
      else if (shape) this.#keyword(shape, given, field, depth)
    }
  }

  #keyword(shape: Shape, given: unknown, field: string, depth: number): void {
    const known = plain[shape]
    if (known) {
      if (!known[0](given)) this.#fault(field, known[1], given)
      return
    }
    const isList = Array.isArray(given)
    if (shape === 'pattern') this.#pattern(given, field)
    else if (shape === 'reference') this.#reference(given, field)
    else if (shape === 'schema' || (shape === 'schemas or schema' && !isList))
      this.schema(given, field, depth + 1)
    else if (shape === 'schemas' || shape === 'schemas or schema') {
      if (!isList || (shape === 'schemas' && given.length === 0))
        return void this.#fault(field, 'must be a list of schemas')
      given.forEach((one, index) => {
        this.schema(one, below(field, index), depth + 1)
      })
    } else if (!isJsonObject(given)) this.#fault(field, 'must be an object of schemas')
    else
      for (const [name, one] of Object.entries(given)) {
        if (shape === 'patterns') this.#pattern(name, below(field, name))
        if (shape !== 'dependencies' || !isNames(one))
          this.schema(one, below(field, name), depth + 1)
      }
  }

  #pattern(given: unknown, field: string): void {
    if (typeof given !== 'string')
      return void this.#fault(field, 'must be a regular expression', given)
    this.#patterns += given.length
    if (this.#patterns > MAX_PATTERNS_LENGTH)
      return void this.#fault(
        field,
        `makes all patterns longer than ${MAX_PATTERNS_LENGTH} characters`,
      )
    try {
      compilePattern(given, ECMASCRIPT)
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      this.#fault(
        field,
        `is not a regular expression of the supported kind: ${error.message}`,
        given,
      )
    }
  }

  #reference(given: unknown, field: string): void {
    if (typeof given !== 'string' || !given.startsWith('#'))
      return void this.#fault(
        field,
        'must point into the schema itself, such as #/$defs/name',
        given,
      )
    try {
      if (resolveReference(this.#document, given, this.#budget) === undefined)
        this.#fault(field, 'names no schema of this document', given)
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      this.#fault(field, 'is one of too many references')
    }
  }

  #fault(field: string, message: string, actual?: unknown): void {
    const shown = typeof actual === 'string' ? actual.slice(0, 200) : actual
    if (this.faults.length < MAX_FAULTS)
      this.faults.push({ field, message, ...(actual !== undefined && { actual: shown }) })
  }
}

/**
 * Returns the faults of a schema, at most 20.
 * @param path path of the schema in the request, such as `input_schema`.
 */
export function schemaFaults(schema: unknown, path: string, rules: SchemaRules = {}): FieldError[] {
  if (isDeeper(schema, 2 * MAX_NESTING))
    return [{ field: path, message: `is nested deeper than ${MAX_NESTING} levels` }]
  if (JSON.stringify(schema).length > MAX_LENGTH)
    return [{ field: path, message: `must have at most ${MAX_LENGTH} characters` }]
  const reading = new Reading(schema, rules)
  reading.schema(schema, path, 0)
  if (reading.faults.length > 0) return reading.faults
  const circle = circleIn(schema)
  return circle === undefined
    ? []
    : [{ field: path, message: `contains a circular reference, through ${circle}` }]
}

/**
 * Whether a document is nested deeper than a number of levels. Avoids recursion, because deep
 * documents would overflow the stack.
 */
function isDeeper(document: unknown, levels: number): boolean {
  let level: unknown[] = [document]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > levels) return true
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    )
  }
  return false
}

/** Returns the subschemas that apply to the same value as the schema. */
function besides(document: unknown, schema: Readonly<Record<string, unknown>>): object[] {
  const all = Object.entries(schema).flatMap(([name, given]): unknown[] => {
    if (!sameValue.has(name)) return []
    if (typeof given === 'string')
      return [resolveReference(document, given, { left: Number.POSITIVE_INFINITY })]
    if (Array.isArray(given)) return given
    return name.startsWith('depend') && isJsonObject(given) ? Object.values(given) : [given]
  })
  return all.filter(isJsonObject)
}
/**
 * Returns a reference in a cycle of schemas that apply to the same value, or undefined if there is
 * no cycle. Applying the schemas of such a cycle would never end.
 */
function circleIn(document: unknown): string | undefined {
  const state = new Map<object, 'open' | 'done'>()
  const begin: unknown[] = [document]
  for (let root = begin.pop(); root !== undefined; root = begin.pop()) {
    if (typeof root !== 'object' || root === null) continue
    begin.push(...Object.values(root))
    if (!isJsonObject(root) || state.has(root)) continue
    const path: { schema: Readonly<Record<string, unknown>>; rest: object[] }[] = []
    const enter = (schema: Readonly<Record<string, unknown>>): void => {
      state.set(schema, 'open')
      path.push({ schema, rest: besides(document, schema) })
    }
    enter(root)
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const next = top.rest.pop()
      if (!next) {
        state.set(top.schema, 'done')
        path.pop()
      } else if (state.get(next) === 'open') return String(top.schema['$ref'] ?? '$dynamicRef')
      else if (!state.has(next) && isJsonObject(next)) enter(next)
    }
  }
  return undefined
}
