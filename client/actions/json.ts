/**
 * The stock action `json`: parse, stringify, query, merge, validate. Templates render parameters as
 * text, so a string is parsed as JSON where a value is expected.
 */
import { isJsonObject } from '../../protocol/rules/json-object.ts'
import type { Parameters } from '../worker/options.ts'

type Operation = (parameters: Parameters) => unknown
const operations: Readonly<Record<string, Operation>> = {
  /** Parses a string as JSON. Other values are returned unchanged. */
  parse: ({ data }) => meant(data, 'data'),
  /** Serializes a value as JSON. A missing value yields `null`. */
  stringify: ({ data }) => JSON.stringify(data ?? null),
  /** Returns the part of a value at the given path. */
  query: ({ data, query }) => find(meant(data, 'data'), query),
  /** Merges two objects recursively. Returns the second value unless both are objects. */
  merge: ({ data, merge_with }) => merge(meant(data, 'data'), meant(merge_with, 'merge_with')),
  /** Reports whether a string is valid JSON, and if not, the error. */
  validate: ({ data }) => {
    try {
      meant(data, 'data')
      return { valid: true }
    } catch (error) {
      return { valid: false, error: (error as Error).message }
    }
  },
}

/**
 * Executes an operation.
 * @throws Error on an unknown operation and on invalid parameters, such as text that is not JSON.
 */
export function json(parameters: Parameters): unknown {
  const name = parameters['operation'] ?? 'parse'
  const operation =
    typeof name === 'string' && Object.hasOwn(operations, name) ? operations[name] : undefined
  if (!operation)
    throw new Error(
      `operation must be one of ${Object.keys(operations).join(', ')}, not ${JSON.stringify(name)}`,
    )
  return operation(parameters)
}

function meant(data: unknown, field: string): unknown {
  if (data === undefined) throw new Error(`${field} is missing`)
  if (typeof data !== 'string') return data
  try {
    return JSON.parse(data)
  } catch (error) {
    throw new Error(`${field} is not JSON: ${(error as Error).message}`)
  }
}

/**
 * Finds a value by `/items/0/name` (a JSON pointer, RFC 6901), `items[0].name` or
 * `$.items[0].name`. An empty path selects the whole value. A missing value yields null.
 */
function find(data: unknown, query: unknown): unknown {
  let at = data
  for (const part of partsOf(typeof query === 'string' ? query : '')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return null
    at = (at as Record<string, unknown>)[part]
  }
  return at
}

function partsOf(query: string): string[] {
  if (query.startsWith('/'))
    return query
      .slice(1)
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const path = query.replace(/^\$?\.?/, '')
  if (path === '') return []
  if (!/^(\.?[^.[\]]+|\[\d+\]|\["[^"]*"\]|\['[^']*'\])*$/.test(path))
    throw new Error(`query is neither a JSON pointer nor a path such as items[0].name: ${query}`)
  return [...path.matchAll(/\["([^"]*)"\]|\['([^']*)'\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? match[4] ?? '',
  )
}

function merge(left: unknown, right: unknown): unknown {
  if (!isJsonObject(left) || !isJsonObject(right)) return right
  const merged = new Map(Object.entries(left))
  for (const [key, value] of Object.entries(right))
    merged.set(key, merged.has(key) ? merge(merged.get(key), value) : value)
  return Object.fromEntries(merged)
}
