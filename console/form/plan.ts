/**
 * Chooses the controls of a form from a JSON Schema. Members without a suitable control are edited
 * as JSON.
 *
 * Invariant: the plan of any schema is finite, even if the schema refers to itself.
 */
import { getOwn } from '../../protocol/lookup.ts'
import { isJsonObject } from '../../protocol/rules/json-object.ts'

/** A JSON Schema. Its keywords are checked when they are read. */
export type FormSchema = Readonly<Record<string, unknown>>
/** An option of a control. */
interface PlanChoice {
  readonly value: unknown
  readonly label: string
}
interface Common {
  readonly label: string
  readonly hint: string | undefined
  readonly schema: FormSchema
  readonly initial: unknown
}
/** The control of a value, with its label, hint and default. */
export type Plan = Common &
  (
    | {
        readonly control:
          | 'text'
          | 'long'
          | 'email'
          | 'url'
          | 'date'
          | 'date-time'
          | 'number'
          | 'boolean'
          | 'json'
      }
    | { readonly control: 'choice' | 'choices'; readonly choices: readonly PlanChoice[] }
    | { readonly control: 'list'; readonly item: Plan; readonly most: number | undefined }
    | { readonly control: 'object'; readonly members: readonly MemberPlan[] }
  )
/** A member of an object. */
interface MemberPlan {
  readonly name: string
  readonly required: boolean
  readonly plan: Plan
}

/** Nesting level from which a value is edited as JSON. */
const MAX_DEPTH = 5
/** Maximum number of options of a choice. */
const MAX_CHOICES = 500
/** Maximum length in characters of a text that is edited in one line. */
const MAX_SHORT_LENGTH = 160

const isSchema = (value: unknown): value is FormSchema => isJsonObject(value)
const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

/** Follows references within the document. */
function resolved(schema: FormSchema, root: FormSchema): FormSchema {
  let found = schema
  for (let hops = 0; hops < 20; hops++) {
    const reference = found['$ref']
    if (typeof reference !== 'string' || !reference.startsWith('#')) break
    let target: unknown = root
    for (const part of reference.slice(1).split('/').filter(Boolean))
      target = isSchema(target)
        ? target[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')]
        : undefined
    if (!isSchema(target)) return {}
    const { $ref: _, ...beside } = found
    found = { ...target, ...beside }
  }
  return found
}
/**
 * Removes `null` from the types or alternatives of a schema if exactly one other type or
 * alternative remains.
 */
function withoutNull(schema: FormSchema, root: FormSchema): FormSchema {
  const { type } = schema
  if (Array.isArray(type)) {
    const rest = type.filter((one) => one !== 'null')
    return rest.length === 1 ? { ...schema, type: rest[0] } : schema
  }
  for (const word of ['anyOf', 'oneOf']) {
    const all = schema[word]
    if (!Array.isArray(all) || all.length > 2) continue
    const rest = all.filter(isSchema).filter((one) => one['type'] !== 'null')
    if (rest.length !== 1 || rest[0] === undefined) continue
    const { [word]: _, ...beside } = schema
    return { ...resolved(rest[0], root), ...beside }
  }
  return schema
}
function choicesOf(schema: FormSchema): readonly PlanChoice[] | undefined {
  const { enum: values, enumNames } = schema
  if (Array.isArray(values) && values.length > 0 && values.length <= MAX_CHOICES)
    return values.map((value, index) => ({
      value,
      label:
        text(Array.isArray(enumNames) ? enumNames[index] : undefined) ??
        (typeof value === 'string' ? value : JSON.stringify(value)),
    }))
  for (const word of ['oneOf', 'anyOf']) {
    const all = schema[word]
    if (!Array.isArray(all) || all.length === 0 || all.length > MAX_CHOICES) continue
    if (!all.every((one) => isSchema(one) && 'const' in one)) continue
    return (all as FormSchema[]).map((one) => ({
      value: one['const'],
      label:
        text(one['title']) ??
        (typeof one['const'] === 'string' ? one['const'] : JSON.stringify(one['const'])),
    }))
  }
  return undefined
}
/** Keywords that a control of an object cannot represent. */
const CONDITIONS = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'patternProperties', 'dependentSchemas']

const formats: Readonly<Record<string, 'email' | 'url' | 'date' | 'date-time' | 'long'>> = {
  email: 'email',
  uri: 'url',
  url: 'url',
  date: 'date',
  'date-time': 'date-time',
  textarea: 'long',
  multiline: 'long',
}

function ofText(schema: FormSchema): 'text' | 'long' | 'email' | 'url' | 'date' | 'date-time' {
  const { format, maxLength } = schema
  const known = typeof format === 'string' ? getOwn(formats, format) : undefined
  if (known) return known
  const isShort =
    typeof format === 'string' ||
    typeof schema['pattern'] === 'string' ||
    (typeof maxLength === 'number' && maxLength <= MAX_SHORT_LENGTH)
  return isShort ? 'text' : 'long'
}

/**
 * Returns the plan of a value.
 * @param name label if the schema has no title.
 */
export function planOf(given: FormSchema, name: string, root = given, depth = 0): Plan {
  const schema = withoutNull(resolved(given, root), root)
  const common: Common = {
    label: text(schema['title']) ?? name,
    hint: text(schema['description']),
    schema,
    initial: schema['default'] ?? ('const' in schema ? schema['const'] : undefined),
  }
  const json: Plan = { ...common, control: 'json' }
  const choices = choicesOf(schema)
  if (choices) return { ...common, control: 'choice', choices }
  if (depth >= MAX_DEPTH) return json
  switch (schema['type']) {
    case 'string':
      return { ...common, control: ofText(schema) }
    case 'number':
    case 'integer':
      return { ...common, control: 'number' }
    case 'boolean':
      return { ...common, control: 'boolean' }
    case 'array': {
      const { items, maxItems } = schema
      if (!isSchema(items)) return json
      const item = planOf(items, '', root, depth + 1)
      if (item.control === 'choice' && schema['uniqueItems'] !== false && item.choices.length <= 30)
        return { ...common, control: 'choices', choices: item.choices }
      const most = typeof maxItems === 'number' ? maxItems : undefined
      return { ...common, control: 'list', item, most }
    }
    case 'object': {
      const { properties, required } = schema
      const names = isSchema(properties) ? Object.entries(properties) : []
      if (names.length === 0 || CONDITIONS.some((word) => word in schema)) return json
      const needed = Array.isArray(required) ? required : []
      return {
        ...common,
        control: 'object',
        members: names.map(([member, part]) => ({
          name: member,
          required: needed.includes(member),
          plan: planOf(isSchema(part) ? part : {}, member, root, depth + 1),
        })),
      }
    }
    default:
      return json
  }
}

/** Returns the initial value of a form: the defaults and constants of the schema. */
export function initialOf(plan: Plan): unknown {
  if (plan.initial !== undefined) return plan.initial
  if (plan.control !== 'object') return undefined
  const members = plan.members.flatMap(({ name, plan: member }): [string, unknown][] => {
    const value = initialOf(member)
    return value === undefined ? [] : [[name, value]]
  })
  return members.length === 0 ? undefined : Object.fromEntries(members)
}
