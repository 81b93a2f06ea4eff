/**
 * Explains why a value does not fit a schema, field by field, in messages for the client. `explain`
 * is called only after a compiled validator has rejected the value. It is a pure function, and
 * supports the subset of JSON Schema that the API rows use.
 */
import { Format } from 'typebox/format'
import type { FieldError } from '../../errors.ts'
import { plural } from '../../naming.ts'
import { isJsonObject } from '../json-object.ts'

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly propertyNames?: Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly minProperties?: number
  readonly maxProperties?: number
}

/** Maximum number of reported faults of a value. */
const MAX_FAULTS = 50

/**
 * Returns the path of a field or an item in the value at `path`, such as `spec.steps[0].config`.
 */
export const member = (path: string, key: string | number): string =>
  typeof key === 'number'
    ? `${path}[${key}]`
    : /^[\w$-]+$/.test(key)
      ? path === ''
        ? key
        : `${path}.${key}`
      : `${path}[${JSON.stringify(key)}]`

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'array'
      : Number.isInteger(value)
        ? 'integer'
        : typeof value
const article = (noun: string) => (/^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`)
/**
 * Returns the representation of a value in a fault. An object, an array, or a string of more than
 * 100 characters is replaced by the name of its type. Other values are unchanged.
 */
const shown = (value: unknown): unknown =>
  isJsonObject(value) || Array.isArray(value) || (typeof value === 'string' && value.length > 100)
    ? kindOf(value)
    : value
const fits = (type: string, value: unknown): boolean =>
  kindOf(value) === type || (type === 'number' && typeof value === 'number')
const formats: Readonly<Record<string, string>> = {
  'date-time': 'an RFC 3339 date and time, such as 2031-02-03T04:05:06.000Z',
  uri: 'a URI',
  email: 'an e-mail address',
}

/**
 * Returns the faults of a value, at most `MAX_FAULTS`. Returns an empty list when no fault is
 * found.
 * @param path location of the value in the request.
 */
export function explain(schema: unknown, value: unknown, path = ''): FieldError[] {
  const faults: FieldError[] = []
  walk(schema as Schema, value, path, faults)
  return faults.slice(0, MAX_FAULTS)
}

function walk(schema: Schema, value: unknown, path: string, faults: FieldError[]): void {
  if (faults.length >= MAX_FAULTS) return
  const say: Say = (message, expected, actual = shown(value)) => {
    faults.push({ field: path, message, expected, ...(actual !== undefined && { actual }) })
  }
  for (const part of schema.allOf ?? []) walk(part, value, path, faults)
  if (schema.anyOf) union(schema.anyOf, value, path, faults)
  else if (schema.enum) {
    if (!schema.enum.includes(value)) say(`must be one of: ${schema.enum.join(', ')}`, schema.enum)
  } else if ('const' in schema) {
    if (schema.const !== value) say(`must be ${JSON.stringify(schema.const)}`, schema.const)
  } else if (schema.type !== undefined && !fits(schema.type, value))
    say(`must be ${article(schema.type)}`, schema.type)
  else if (typeof value === 'string') text(schema, value, say)
  else if (typeof value === 'number') number(schema, value, say)
  else if (Array.isArray(value)) array(schema, value, path, say, faults)
  else if (isJsonObject(value)) object(schema, value, path, say, faults)
}

type Say = (message: string, expected: unknown, actual?: unknown) => void

function text(schema: Schema, value: string, say: Say): void {
  const length = [...value].length
  if (schema.minLength !== undefined && length < schema.minLength)
    say(
      schema.minLength === 1
        ? 'must not be empty'
        : `must have at least ${plural(schema.minLength, 'character')}`,
      { minLength: schema.minLength },
      length,
    )
  else if (schema.maxLength !== undefined && length > schema.maxLength)
    say(
      `must have at most ${plural(schema.maxLength, 'character')}`,
      { maxLength: schema.maxLength },
      length,
    )
  else if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value))
    say(`must match ${schema.pattern}${schema.description ? ` (${schema.description})` : ''}`, {
      pattern: schema.pattern,
    })
  else if (schema.format !== undefined && !Format.Test(schema.format, value))
    say(`must be ${formats[schema.format] ?? schema.format}`, schema.format)
}

function number(schema: Schema, value: number, say: Say): void {
  if (schema.minimum !== undefined && value < schema.minimum)
    say(`must be at least ${schema.minimum}`, { minimum: schema.minimum })
  if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
    say(`must be greater than ${schema.exclusiveMinimum}`, {
      exclusiveMinimum: schema.exclusiveMinimum,
    })
  if (schema.maximum !== undefined && value > schema.maximum)
    say(`must be at most ${schema.maximum}`, { maximum: schema.maximum })
}

function array(
  schema: Schema,
  value: readonly unknown[],
  path: string,
  say: Say,
  faults: FieldError[],
): void {
  if (schema.minItems !== undefined && value.length < schema.minItems)
    say(
      `must have at least ${plural(schema.minItems, 'item')}`,
      { minItems: schema.minItems },
      value.length,
    )
  // The items of an oversized array are not checked, because their number is unbounded.
  if (schema.maxItems !== undefined && value.length > schema.maxItems)
    return void say(
      `must have at most ${plural(schema.maxItems, 'item')}`,
      { maxItems: schema.maxItems },
      value.length,
    )
  if (schema.uniqueItems && new Set(value.map((item) => JSON.stringify(item))).size < value.length)
    say('must not repeat an item', { uniqueItems: true })
  const { items } = schema
  if (!items) return
  for (let index = 0; index < value.length && faults.length < MAX_FAULTS; index++)
    walk(items, value[index], member(path, index), faults)
}

function object(
  schema: Schema,
  value: Readonly<Record<string, unknown>>,
  path: string,
  say: Say,
  faults: FieldError[],
): void {
  const known = schema.properties ?? {}
  const patterns = Object.entries(schema.patternProperties ?? {}).map(([pattern, part]) => ({
    pattern: new RegExp(pattern, 'u'),
    part,
  }))
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(value, name))
      faults.push({
        field: member(path, name),
        message: 'is required',
        ...(known[name]?.type !== undefined && { expected: known[name].type }),
      })
  }
  if (schema.minProperties !== undefined && Object.keys(value).length < schema.minProperties)
    say(
      `must have at least ${plural(schema.minProperties, 'member')}`,
      { minProperties: schema.minProperties },
      Object.keys(value).length,
    )
  if (schema.maxProperties !== undefined && Object.keys(value).length > schema.maxProperties)
    say(
      `must have at most ${plural(schema.maxProperties, 'member')}`,
      { maxProperties: schema.maxProperties },
      Object.keys(value).length,
    )
  // The entries are not collected first, because the value may have many more than are reported.
  for (const name in value) {
    if (faults.length >= MAX_FAULTS) return
    if (!Object.hasOwn(value, name)) continue
    const item = value[name]
    if (schema.propertyNames)
      faults.push(
        ...explain(schema.propertyNames, name, member(path, name)).map((fault) => ({
          ...fault,
          message: `its name ${fault.message}`,
        })),
      )
    const own = Object.hasOwn(known, name) ? known[name] : undefined
    const matching = patterns.filter(({ pattern }) => pattern.test(name))
    if (own) walk(own, item, member(path, name), faults)
    for (const { part } of matching) walk(part, item, member(path, name), faults)
    if (own || matching.length > 0) continue
    if (schema.additionalProperties === false)
      faults.push({
        field: member(path, name),
        message: 'is not a known field',
        ...(Object.keys(known).length > 0 && { expected: Object.keys(known) }),
      })
    else if (isJsonObject(schema.additionalProperties))
      walk(schema.additionalProperties as Schema, item, member(path, name), faults)
  }
}

/**
 * Reports the faults of one branch of a union, or nothing when a branch fits. If all branches have
 * a constant in the same field, the constant selects the branch. Otherwise, only branches with a
 * fault below `path` are considered, and the one with the fewest faults is selected. If there is no
 * such branch, a single fault lists what the branches expect.
 */
function union(all: readonly Schema[], value: unknown, path: string, faults: FieldError[]): void {
  const branches = all.filter(({ type }) => type !== 'null' || value === null)
  if (branches.length === 1) return void walk(branches[0] as Schema, value, path, faults)
  const constant = Object.entries(branches[0]?.properties ?? {}).find(
    ([, part]) => 'const' in part,
  )?.[0]
  if (
    constant !== undefined &&
    branches.every((branch) => 'const' in (branch.properties?.[constant] ?? {}))
  ) {
    if (isJsonObject(value)) meant(branches, constant, value, path, faults)
    else
      faults.push({
        field: path,
        message: 'must be an object',
        expected: 'object',
        actual: shown(value),
      })
    return
  }
  const tries = branches.map((branch) => {
    const found: FieldError[] = []
    walk(branch, value, path, found)
    return found
  })
  if (tries.some((found) => found.length === 0)) return
  const least = tries
    .filter((found) => found.some(({ field }) => field !== path))
    .sort((a, b) => a.length - b.length)[0]
  if (least) {
    faults.push(...least)
    return
  }
  const expected = tries.map((found) => found[0]?.expected)
  const allowed = expected.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
  faults.push({
    field: path,
    message: `must be one of: ${allowed.join(', ')}`,
    expected,
    actual: shown(value),
  })
}

/**
 * Reports the faults of the branch whose constant is the value of the field `constant`. If there is
 * no such branch, reports a fault of this field.
 */
function meant(
  branches: readonly Schema[],
  constant: string,
  value: Readonly<Record<string, unknown>>,
  path: string,
  faults: FieldError[],
): void {
  const constants = branches.map((branch) => branch.properties?.[constant]?.const)
  const branch = branches[constants.indexOf(value[constant])]
  const actual = shown(value[constant])
  if (branch) walk(branch, value, path, faults)
  else
    faults.push({
      field: member(path, constant),
      message: `${actual === undefined ? 'is required: one of' : 'must be one of:'} ${constants.join(', ')}`,
      expected: constants,
      ...(actual !== undefined && { actual }),
    })
}
