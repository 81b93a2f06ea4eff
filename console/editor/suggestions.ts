/** Suggests member names and values based on a JSON Schema. */
import type { Context, Level } from './context.ts'

/** The keywords of JSON Schema that suggestions use. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly title?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema | readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
}
/** A suggestion. `value` is JSON text for a value, or the name of a member. */
export interface Suggestion {
  readonly value: string
  readonly type: 'name' | 'value'
  /** The type of the member, such as `object`. */
  readonly detail?: string
  readonly info?: string
  readonly required?: boolean
}

/** Maximum number of schemas that may apply at one position. */
const MAX_ALTERNATIVES = 200

/** Resolves a reference within the document. */
function resolved(schema: Schema, root: Schema): Schema {
  let found: unknown = schema
  for (let hops = 0; hops < 20; hops++) {
    const reference = (found as Schema | undefined)?.$ref
    if (!reference?.startsWith('#')) break
    found = reference
      .slice(1)
      .split('/')
      .filter((part) => part !== '')
      .reduce<unknown>(
        (value, part) =>
          (value as Readonly<Record<string, unknown>> | undefined)?.[
            decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
          ],
        root,
      )
  }
  return (found ?? {}) as Schema
}

/** Whether an alternative requires a constant for a member that has a different value. */
const contradicts = ({ properties = {} }: Schema, members: Level['members']): boolean =>
  Object.entries(properties).some(([name, part]) => {
    const given = members.get(name)
    return given !== undefined && 'const' in part && String(part.const) !== given
  })

/** Returns the schemas that may apply to one value. */
function alternatives(all: readonly Schema[], root: Schema, members?: Level['members']): Schema[] {
  const found: Schema[] = []
  const todo = [...all]
  for (let next = todo.shift(); next && found.length < MAX_ALTERNATIVES; next = todo.shift()) {
    const schema = resolved(next, root)
    if (members && contradicts(schema, members)) continue
    found.push(schema)
    todo.push(...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? []))
  }
  return found
}
function below(schema: Schema, { key = '', isArray }: Level): Schema[] {
  if (isArray) {
    const { items } = schema
    if (items === undefined) return []
    return Array.isArray(items) ? [(items as Schema[])[Number(key)] ?? {}] : [items as Schema]
  }
  const { properties = {}, patternProperties = {}, additionalProperties } = schema
  const own = Object.hasOwn(properties, key) ? properties[key] : undefined
  if (own) return [own]
  const matching = Object.entries(patternProperties).flatMap(([pattern, part]) => {
    try {
      return new RegExp(pattern, 'u').test(key) ? [part] : []
    } catch {
      return []
    }
  })
  if (matching.length > 0) return matching
  return typeof additionalProperties === 'object' ? [additionalProperties] : []
}

const typeOf = (schema: Schema): string | undefined =>
  Array.isArray(schema.type)
    ? schema.type.join(' | ')
    : typeof schema.type === 'string'
      ? schema.type
      : schema.enum
        ? 'enum'
        : 'const' in schema
          ? JSON.stringify(schema.const)
          : undefined

/** Returns the suggestions for a position; for names, required members first. */
export function suggest(root: Schema, { kind, levels }: Context): Suggestion[] {
  let current: readonly Schema[] = [root]
  const last = levels.at(-1)
  for (const one of levels) {
    const members = new Map(one.members)
    // The value at the position is incomplete, so it must not exclude any alternative.
    if (one === last && one.key !== undefined) members.delete(one.key)
    const here = alternatives(current, root, one.isArray ? undefined : members)
    if (one === last && kind === 'name') return names(here, root, one)
    current = here.flatMap((schema) => below(schema, one))
  }
  return values(alternatives(current, root))
}

function names(schemas: readonly Schema[], root: Schema, { members }: Level): Suggestion[] {
  const found = new Map<string, Suggestion>()
  for (const { properties = {}, required = [] } of schemas)
    for (const [name, part] of Object.entries(properties)) {
      if (members.has(name) || found.has(name)) continue
      const schema = resolved(part, root)
      const detail = typeOf(schema)
      const info = schema.description ?? schema.title
      found.set(name, {
        value: name,
        type: 'name',
        ...(detail !== undefined && { detail }),
        ...(info !== undefined && { info }),
        required: required.includes(name),
      })
    }
  return [...found.values()].sort((a, b) => Number(b.required) - Number(a.required))
}

function values(schemas: readonly Schema[]): Suggestion[] {
  const found = new Map<string, Suggestion>()
  const add = (value: unknown, info: string | undefined): void => {
    const text = JSON.stringify(value)
    if (text !== undefined && !found.has(text))
      found.set(text, { value: text, type: 'value', ...(info !== undefined && { info }) })
  }
  for (const schema of schemas) {
    for (const one of schema.enum ?? []) add(one, schema.description)
    if ('const' in schema) add(schema.const, schema.description)
    if (schema.type === 'boolean') for (const one of [true, false]) add(one, undefined)
    if (schema.default !== undefined) add(schema.default, schema.description)
  }
  return [...found.values()]
}
