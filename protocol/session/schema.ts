/**
 * The part of JSON Schema that outputs and arguments of tools are held to: `type`, `properties`, `required`,
 * `additionalProperties`, `items`, `enum`, `oneOf`/`anyOf`/`allOf`, `nullable`, and bounds of numbers, texts and lists. It is
 * evaluated inside a shard, so it is bounded: patterns run in linear time and nothing refers to anything else.
 */
import type { Open } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { compilePattern, matchesPattern } from './pattern.ts'

const refused: ReadonlySet<string> = new Set([
  '$ref',
  '$defs',
  'definitions',
  'if',
  'then',
  'else',
  'const',
  'patternProperties',
  'prefixItems',
])
const types: ReadonlySet<string> = new Set([
  'object',
  'array',
  'string',
  'number',
  'integer',
  'boolean',
  'null',
])
const isObject = (value: unknown): value is Open =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const lists = ['oneOf', 'anyOf', 'allOf'] as const
const counts = [
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
] as const
const numbers = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
] as const

/** Faults of a schema itself. @param path where it stands in the request. */
export function schemaFaults(schema: unknown, path: string): FieldError[] {
  if (typeof schema === 'boolean') return []
  if (!isObject(schema)) return [{ field: path, message: 'must be a schema' }]
  const faults: FieldError[] = Object.keys(schema)
    .filter((key) => refused.has(key))
    .map((key) => ({ field: `${path}.${key}`, message: 'is not supported in an output schema' }))
  const { type, properties, required, items, additionalProperties, pattern } = schema
  const named = type === undefined ? [] : Array.isArray(type) ? type : [type]
  if (named.some((name) => !types.has(String(name))))
    faults.push({
      field: `${path}.type`,
      message: 'is not a type',
      expected: [...types],
      actual: type,
    })
  if (properties !== undefined && !isObject(properties))
    faults.push({ field: `${path}.properties`, message: 'must be an object' })
  if (
    required !== undefined &&
    !(Array.isArray(required) && required.every((name) => typeof name === 'string'))
  )
    faults.push({ field: `${path}.required`, message: 'must be a list of names' })
  if (schema['enum'] !== undefined && !Array.isArray(schema['enum']))
    faults.push({ field: `${path}.enum`, message: 'must be a list' })
  for (const key of counts)
    if (schema[key] !== undefined && !(Number.isInteger(schema[key]) && Number(schema[key]) >= 0))
      faults.push({ field: `${path}.${key}`, message: 'must be a whole number from 0' })
  for (const key of numbers)
    if (
      schema[key] !== undefined &&
      typeof schema[key] !== 'number' &&
      typeof schema[key] !== 'boolean'
    )
      faults.push({ field: `${path}.${key}`, message: 'must be a number' })
  if (
    pattern !== undefined &&
    (typeof pattern !== 'string' || compilePattern(pattern) === undefined)
  )
    faults.push({
      field: `${path}.pattern`,
      message: 'is not a regular expression of the supported kind',
      actual: pattern,
    })
  for (const [name, inner] of isObject(properties) ? Object.entries(properties) : [])
    faults.push(...schemaFaults(inner, `${path}.properties.${name}`))
  if (items !== undefined) faults.push(...schemaFaults(items, `${path}.items`))
  if (isObject(additionalProperties))
    faults.push(...schemaFaults(additionalProperties, `${path}.additionalProperties`))
  for (const key of lists) {
    const inner = schema[key]
    if (inner === undefined) continue
    if (!Array.isArray(inner) || inner.length === 0)
      faults.push({ field: `${path}.${key}`, message: 'must be a list of schemas' })
    else
      inner.forEach((one, index) => {
        faults.push(...schemaFaults(one, `${path}.${key}[${index}]`))
      })
  }
  return faults
}

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
const isOf = (value: unknown, type: unknown): boolean =>
  type === typeOf(value) || (type === 'integer' && Number.isInteger(value))
const same = (a: unknown, b: unknown): boolean => a === b || canonicalJson(a) === canonicalJson(b)

/** Faults of a value under a schema; what the schema says beyond the supported part is passed over. */
export function valueFaults(schema: unknown, value: unknown, path: string): FieldError[] {
  if (schema === false) return [{ field: path, message: 'is not allowed' }]
  if (!isObject(schema) || (value === null && schema['nullable'] === true)) return []
  const { type, enum: allowed } = schema
  const named = type === undefined ? [] : Array.isArray(type) ? type : [type]
  if (named.length > 0 && !named.some((one) => isOf(value, one)))
    return [
      {
        field: path,
        message: `must be ${named.join(' or ')}`,
        expected: type,
        actual: typeOf(value),
      },
    ]
  const faults: FieldError[] = []
  if (Array.isArray(allowed) && !allowed.some((one) => same(one, value)))
    faults.push({ field: path, message: 'is not one of the allowed values', expected: allowed })
  if (typeof value === 'number') faults.push(...numberFaults(schema, value, path))
  if (typeof value === 'string') faults.push(...textFaults(schema, value, path))
  if (Array.isArray(value))
    faults.push(
      ...bounds(schema, 'minItems', 'maxItems', value.length, path, 'items'),
      ...value.flatMap((item, index) =>
        valueFaults(schema['items'] ?? true, item, `${path}[${index}]`),
      ),
    )
  if (isObject(value)) faults.push(...objectFaults(schema, value, path))
  return [...faults, ...combined(schema, value, path)]
}

function bounds(
  schema: Open,
  least: string,
  most: string,
  size: number,
  path: string,
  what: string,
): FieldError[] {
  const [min, max] = [schema[least], schema[most]]
  if (typeof min === 'number' && size < min)
    return [
      {
        field: path,
        message: `must have at least ${min} ${what}`,
        expected: { [least]: min },
        actual: size,
      },
    ]
  return typeof max === 'number' && size > max
    ? [
        {
          field: path,
          message: `must have at most ${max} ${what}`,
          expected: { [most]: max },
          actual: size,
        },
      ]
    : []
}
function numberFaults(schema: Open, value: number, path: string): FieldError[] {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const fault = (message: string): FieldError[] => [{ field: path, message, actual: value }]
  if (
    typeof minimum === 'number' &&
    (exclusiveMinimum === true ? value <= minimum : value < minimum)
  )
    return fault(`must be at least ${minimum}`)
  if (
    typeof maximum === 'number' &&
    (exclusiveMaximum === true ? value >= maximum : value > maximum)
  )
    return fault(`must be at most ${maximum}`)
  if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum)
    return fault(`must be more than ${exclusiveMinimum}`)
  if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum)
    return fault(`must be less than ${exclusiveMaximum}`)
  return typeof multipleOf === 'number' &&
    multipleOf > 0 &&
    !Number.isInteger(Number((value / multipleOf).toFixed(9)))
    ? fault(`must be a multiple of ${multipleOf}`)
    : []
}
function textFaults(schema: Open, value: string, path: string): FieldError[] {
  const { pattern } = schema
  const faults = bounds(schema, 'minLength', 'maxLength', [...value].length, path, 'characters')
  return typeof pattern !== 'string' || matchesPattern(pattern, value)
    ? faults
    : [...faults, { field: path, message: `must match ${pattern}`, expected: pattern }]
}
function objectFaults(schema: Open, value: Open, path: string): FieldError[] {
  const { required, additionalProperties } = schema
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const below = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const missing = Array.isArray(required)
    ? required.filter(
        (name): name is string => typeof name === 'string' && !Object.hasOwn(value, name),
      )
    : []
  return [
    ...missing.map((name) => ({ field: below(name), message: 'is required' })),
    ...bounds(schema, 'minProperties', 'maxProperties', Object.keys(value).length, path, 'members'),
    ...Object.entries(value).flatMap(([name, inner]) =>
      Object.hasOwn(properties, name)
        ? valueFaults(properties[name], inner, below(name))
        : additionalProperties === undefined
          ? []
          : valueFaults(additionalProperties, inner, below(name)),
    ),
  ]
}
function combined(schema: Open, value: unknown, path: string): FieldError[] {
  const fits = (list: unknown): number =>
    Array.isArray(list)
      ? list.filter((one) => valueFaults(one, value, path).length === 0).length
      : 1
  const { oneOf, anyOf, allOf } = schema
  if (Array.isArray(allOf)) {
    const faults = allOf.flatMap((one) => valueFaults(one, value, path))
    if (faults.length > 0) return faults
  }
  if (Array.isArray(anyOf) && fits(anyOf) === 0)
    return [{ field: path, message: 'fits none of the allowed forms' }]
  return Array.isArray(oneOf) && fits(oneOf) !== 1
    ? [{ field: path, message: 'must fit exactly one of the allowed forms' }]
    : []
}

/** JSON whose members are in order, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  return `{${Object.keys(value)
    .sort()
    .filter((key) => value[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
    .join()}}`
}
