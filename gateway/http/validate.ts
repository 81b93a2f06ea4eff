/**
 * Parses and validates the query string and the body of a request, as its API row declares them.
 * Rules that need stored state are not checked here.
 */

import type { TSchema } from 'typebox'
import { type JsonObject, wholeOf } from '../../protocol/common.ts'
import type { Row } from '../../protocol/contract.ts'
import {
  type FieldError,
  isRefusal,
  type Refusal,
  refuse,
  refuseFields,
} from '../../protocol/errors.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import { member } from '../../protocol/rules/schema-faults/explain.ts'
import { faultsOf } from '../../protocol/rules/schema-faults/faults.ts'
import { parseJson } from './json.ts'

type Values = Readonly<Record<string, unknown>>
interface Described {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Described>>
  readonly items?: Described
  readonly anyOf?: readonly Described[]
  readonly enum?: readonly unknown[]
  readonly default?: unknown
}

/** Maximum nesting depth of a body. */
const MAX_DEPTH = 64

/**
 * Returns the refusal for a value that does not fit a schema, or undefined when the value fits.
 * @param root name of the whole value in the faults.
 */
function check(schema: TSchema, value: unknown, root: string): Refusal | undefined {
  const faults = faultsOf(schema, value, root)
  return faults.length > 0 ? refuseFields(...faults) : undefined
}
const decode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '))
/**
 * Returns the names and values in a query string, or undefined when it is not percent-encoded
 * UTF-8.
 */
function pairsOf(query: string): [string, string][] | undefined {
  try {
    return query
      .split('&')
      .filter(Boolean)
      .map((pair) => {
        const [name = '', ...rest] = pair.split('=')
        return [decode(name), decode(rest.join('='))]
      })
  } catch {
    return undefined
  }
}

const scalar = (text: string, schema: Described | undefined): unknown =>
  schema?.type === 'boolean' && (text === 'true' || text === 'false')
    ? text === 'true'
    : schema?.type === 'integer' || schema?.type === 'number'
      ? (wholeOf(text) ?? (/^-?\d{1,16}\.\d+$/.test(text) ? Number(text) : text))
      : text

/**
 * Returns the values in a list. In a filter with enumerated values, an empty list is one empty value,
 * which is refused, because a filter without values would select everything.
 */
function partsOf(name: string, text: string, { items }: Described): readonly string[] {
  const parts = text.split(',').filter(Boolean)
  return parts.length === 0 && items?.enum && name !== 'include' ? [''] : parts
}

/** The values of an empty query string, for rows that accept one. */
const defaults = new WeakMap<Row, Values>()
/**
 * Reads a query string: converts numbers and booleans, accepts lists as repeated parameters or as
 * comma-separated values, and fills in defaults. Unknown and invalid parameters are refused. If the
 * row's `exact` parameter is given, `cursor`, `order` and `limit` are ignored.
 */
export function readQuery(row: Row, query: string): Values | Refusal {
  if (query !== '') return readPairs(row, query)
  let values = defaults.get(row)
  if (!values) {
    const read = readPairs(row, query)
    if (isRefusal(read)) return read
    values = read
    defaults.set(row, values)
  }
  return { ...values }
}
function readPairs(row: Row, query: string): Values | Refusal {
  const schema = row.shape.query
  const pairs = pairsOf(query)
  if (!pairs) return refuseFields({ field: 'query', message: 'is not percent-encoded UTF-8' })
  const known =
    (schema as { properties?: Readonly<Record<string, Described>> } | undefined)?.properties ?? {}
  const values: Record<string, unknown> = Object.create(null)
  const faults: FieldError[] = []
  for (const [name, text] of pairs) {
    const described = Object.hasOwn(known, name) ? known[name] : undefined
    if (!described)
      faults.push({
        field: member('', name),
        message: 'is not a known parameter',
        ...(schema && { expected: Object.keys(known) }),
      })
    else if (described.type === 'array')
      values[name] = [
        ...((values[name] as unknown[] | undefined) ?? []),
        ...partsOf(name, text, described).map((part) => scalar(part, described.items)),
      ]
    else if (name in values) faults.push({ field: name, message: 'appears more than once' })
    else values[name] = scalar(text, described)
  }
  if (faults.length > 0) return refuseFields(...faults)
  const { exact } = row.shape
  if (exact !== undefined && (values[exact] as unknown[] | undefined)?.length)
    for (const name of ['cursor', 'order', 'limit']) delete values[name]
  for (const [name, described] of Object.entries(known))
    if (!(name in values) && described.default !== undefined) values[name] = described.default
  const plain = { ...values }
  return (schema && check(schema, plain, 'query')) ?? plain
}

/**
 * Parses a body as JSON, and validates it with the schema and the additional check of the row.
 * @param text the body; undefined when it is not UTF-8.
 * @param type the Content-Type header.
 */
export function readBody(
  row: Row,
  text: string | undefined,
  type: string | undefined,
): Values | Refusal {
  const { body: schema, bodyOptional, check: further } = row.shape
  const blank = text === ''
  if (blank && (!schema || bodyOptional)) return {}
  if (blank) return refuseFields({ field: 'body', message: 'is required', expected: 'object' })
  if (
    type !== undefined &&
    type !== 'application/json' &&
    !/^(application\/([\w.-]+\+)?json|text\/plain)\b/i.test(type)
  )
    return refuse('unsupported_media_type', { content_type: type })
  if (text === undefined) return refuseFields({ field: 'body', message: 'is not UTF-8' })
  const parsed = parseJson(text)
  if ('fault' in parsed) return refuseFields({ field: 'body', message: parsed.fault })
  const { value } = parsed
  const fault = unsafeValueFault(value)
  if (fault) return refuseFields({ ...fault, field: fault.field || 'body' })
  if (!schema) {
    const extra = isJsonObject(value) ? Object.keys(value) : undefined
    if (!extra)
      return refuseFields({ field: 'body', message: 'must be an object', expected: 'object' })
    return extra.length === 0
      ? {}
      : refuseFields(
          ...extra
            .slice(0, 50)
            .map((name) => ({ field: member('', name), message: 'is not a known field' })),
        )
  }
  const refused = check(schema, value, 'body')
  if (refused) return refused
  const meant = text.includes('null') ? withoutNulls(schema, value) : value
  const faults = further?.(meant as never) ?? []
  return faults.length > 0 ? refuseFields(...faults) : (meant as Values)
}

/**
 * Parses a body as a JSON object of any content, for requests of other systems. Their form is not
 * declared by a row.
 */
export function readObject(text: string): JsonObject | Refusal {
  const parsed = parseJson(text)
  if ('fault' in parsed) return refuseFields({ field: 'body', message: parsed.fault })
  const { value } = parsed
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuseFields({ field: 'body', message: 'must be a JSON object', expected: 'object' })
  const fault = unsafeValueFault(value)
  return fault ? refuseFields({ ...fault, field: fault.field || 'body' }) : (value as JsonObject)
}

/**
 * Returns a copy of the value without the null fields that the schema treats as absent
 * (`orAbsent`). All other null fields are kept.
 */
function withoutNulls(schema: Described, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (schema.anyOf)
    return schema.anyOf.reduce((rest, branch) => withoutNulls(branch, rest), value as unknown)
  const { items, properties } = schema
  if (Array.isArray(value)) return items ? value.map((item) => withoutNulls(items, item)) : value
  if (!properties) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) => {
      const part = Object.hasOwn(properties, name) ? properties[name] : undefined
      return item === null && part?.default === null
        ? []
        : [[name, part ? withoutNulls(part, item) : item]]
    }),
  )
}

/**
 * Checks a parsed value for faults that no schema permits: nesting of more than `MAX_DEPTH` levels,
 * names that give access to an object's prototype, and numbers such as 1e999, which are parsed as
 * infinity. JSON cannot express infinity, so the stored value would differ from the value in
 * memory. Returns one of the faults; undefined for a safe value.
 */
export function unsafeValueFault(value: unknown): FieldError | undefined {
  const found = findUnsafe(value, 1)
  if (!found) return undefined
  const { keys, ...fault } = found
  return { field: keys.reduceRight<string>(member, ''), ...fault }
}

/** A fault, with the keys of its path from the innermost to the outermost. */
interface Unsafe extends Omit<FieldError, 'field'> {
  readonly keys: (string | number)[]
}

/**
 * Returns the first fault in a value. Almost every value is safe, so the path is built only when a
 * fault was found.
 */
function findUnsafe(value: unknown, depth: number): Unsafe | undefined {
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : { keys: [], message: 'is too large a number' }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > MAX_DEPTH)
    return {
      keys: [],
      message: `is nested more than ${MAX_DEPTH} levels deep`,
      expected: { maxDepth: MAX_DEPTH },
    }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const found = findUnsafe(value[index], depth + 1)
      if (found) return inside(found, index)
    }
    return undefined
  }
  for (const key in value) {
    const item = (value as Values)[key]
    const found = isUnsafeName(key, item)
      ? { keys: [], message: 'is not allowed as a name' }
      : findUnsafe(item, depth + 1)
    if (found) return inside(found, key)
  }
  return undefined
}

function inside(found: Unsafe, key: string | number): Unsafe {
  found.keys.push(key)
  return found
}
const isUnsafeName = (key: string, item: unknown): boolean =>
  key === '__proto__' ||
  (key === 'constructor' &&
    typeof item === 'object' &&
    item !== null &&
    Object.hasOwn(item, 'prototype'))
