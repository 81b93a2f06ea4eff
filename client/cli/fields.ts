/**
 * Represents the fields of an API row as command-line options, and parses their arguments. Pure
 * functions.
 */
import { type Row, routeOf } from '../../protocol/contract.ts'

/** The parts of a JSON Schema that are used here. */
interface Schema {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly pattern?: string
  readonly contentEncoding?: string
}
export interface Field {
  /** The field's name in the API. */
  readonly name: string
  readonly form: 'text' | 'number' | 'whole' | 'boolean' | 'list' | 'json' | 'file'
  readonly choices?: readonly string[]
  readonly required: boolean
  /** Set if the field accepts null. The argument `null` clears its value. */
  readonly nullable?: true
  /** Description, bounds and default value. */
  readonly help: string
}
/** The reason why an argument is not a valid value of its field. */
export interface UsageFault {
  readonly fault: string
}

/**
 * Converts the name of a field to the name of its flag: `definition_id` becomes `definition-id`.
 */
export const kebab = (name: string): string => name.replaceAll('_', '-')

/**
 * Returns the path parameters that a command takes as arguments. The project is a flag, except in
 * rows of the group `project`.
 */
export const slotsOf = (name: string, row: Row): string[] =>
  routeOf(row).slots.filter((slot) => slot !== 'project' || name.startsWith('project.'))

/** Returns the fields of a row's body and query. */
export function fieldsOf({ shape }: Row): Field[] {
  return [shape.body, shape.query].flatMap((schema) => {
    const { properties = {}, required = [] } = (schema ?? {}) as Schema
    return Object.entries(properties).map(([name, member]) =>
      fieldOf(name, member, required.includes(name)),
    )
  })
}

function fieldOf(name: string, given: Schema, required: boolean): Field {
  const some = given.anyOf?.filter(({ type }) => type !== 'null')
  const nullable = some?.length === 1 && given.anyOf?.length === 2
  const schema = (nullable ? some[0] : given) ?? given
  const inner = schema.type === 'array' ? schema.items : schema
  const choices = inner?.enum?.every((value) => typeof value === 'string')
    ? (inner.enum as readonly string[])
    : undefined
  return {
    name,
    form: formOf(schema),
    ...(choices && { choices }),
    required,
    ...(nullable && { nullable }),
    help: helpOf(schema),
  }
}
function formOf({ type, enum: values, items, contentEncoding }: Schema): Field['form'] {
  if (contentEncoding === 'base64') return 'file'
  if (type === 'integer') return 'whole'
  if (type === 'number' || type === 'boolean') return type
  if (type === 'string' || values) return 'text'
  return type === 'array' && items && formOf(items) === 'text' ? 'list' : 'json'
}
function helpOf({ description, minimum, maximum, default: standard }: Schema): string {
  const range =
    minimum !== undefined && maximum !== undefined
      ? `${minimum} to ${maximum}`
      : minimum !== undefined
        ? `${minimum} or more`
        : maximum !== undefined
          ? `at most ${maximum}`
          : ''
  const parts = [
    description ?? '',
    range,
    standard === undefined ? '' : `default ${JSON.stringify(standard)}`,
  ].filter((part) => part !== '')
  return parts.join('; ')
}

/** Returns the placeholder of a field's value in the help text. */
export const placeholder = (field: Field): string =>
  field.nullable ? placeholderOf(field).replace(/(?=[\]>]$)/, '|null') : placeholderOf(field)
const placeholderOf = ({ form, name, choices }: Field): string =>
  form === 'boolean'
    ? '[boolean]'
    : form === 'file'
      ? '<file>'
      : form === 'json'
        ? '<json|@file>'
        : form === 'list'
          ? `<${kebab(name)}...>`
          : form === 'text'
            ? `<${choices ? choices.join('|') : 'text'}>`
            : '<number>'

/** Returns the content of a file, as text or in base64; `-` is standard input. */
type ReadFile = (file: string, encoding?: 'base64') => string
/**
 * Parses an argument as the value of a field.
 * @param read reads a file: the one that is named after an `@`, or the argument of a file field.
 */
export function readValue(
  field: Field,
  text: string,
  read: ReadFile,
): { readonly value: unknown } | UsageFault {
  const { form, choices, name } = field
  if (field.nullable && text === 'null') return { value: null }
  switch (form) {
    case 'text':
      return choices && !choices.includes(text)
        ? { fault: `${name} must be one of ${choices.join(', ')}, not ${JSON.stringify(text)}` }
        : { value: text }
    case 'number':
    case 'whole': {
      const value = text.trim() === '' ? Number.NaN : Number(text)
      if (!Number.isFinite(value) || (form === 'whole' && !Number.isInteger(value)))
        return {
          fault: `${name} must be a ${form === 'whole' ? 'whole ' : ''}number, not ${JSON.stringify(text)}`,
        }
      return { value }
    }
    case 'boolean':
      return text === 'true' || text === 'false'
        ? { value: text === 'true' }
        : { fault: `${name} must be true or false, not ${JSON.stringify(text)}` }
    case 'list': {
      const value = text.trim().startsWith('[')
        ? parseJson(name, text)
        : {
            value: text
              .split(',')
              .map((part) => part.trim())
              .filter((part) => part !== ''),
          }
      if ('fault' in value) return value
      const wrong =
        choices && Array.isArray(value.value)
          ? value.value.find((part) => !choices.includes(String(part)))
          : undefined
      return wrong === undefined
        ? value
        : {
            fault: `${name} must contain only ${choices?.join(', ')}, not ${JSON.stringify(wrong)}`,
          }
    }
    case 'file':
      return { value: read(text.replace(/^@/, ''), 'base64') }
    case 'json':
      return parseJson(name, text.startsWith('@') ? read(text.slice(1)) : text)
  }
}

/** Parses JSON text; `name` identifies the text in the error message. */
export function parseJson(name: string, text: string): { readonly value: unknown } | UsageFault {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return {
      fault:
        `${name} is not JSON (${(error as Error).message}); ` +
        'pass a file as @name, and protect quotation marks from the shell',
    }
  }
}

/**
 * Builds an input from a body and `field=value` arguments. Later arguments take precedence. An
 * unknown field is an error whose message lists the known fields.
 */
export function inputOf(
  fields: readonly Field[],
  slots: readonly string[],
  sets: readonly string[],
  body: unknown,
  read: ReadFile,
): { readonly input: Record<string, unknown> } | UsageFault {
  if (body !== undefined && (typeof body !== 'object' || body === null || Array.isArray(body)))
    return { fault: 'the body must be a JSON object' }
  const input: Record<string, unknown> = { ...(body as Record<string, unknown> | undefined) }
  for (const set of sets) {
    const at = set.indexOf('=')
    const name = set.slice(0, at).replaceAll('-', '_')
    if (at <= 0) return { fault: `--set takes field=value, not ${JSON.stringify(set)}` }
    const field =
      fields.find((known) => known.name === name) ??
      ([...slots, 'project'].includes(name)
        ? ({ name, form: 'text', required: true, help: '' } as const)
        : undefined)
    if (!field)
      return {
        fault:
          `there is no field ${name}; the available fields are ` +
          [...slots, ...fields.map((known) => known.name)].join(', '),
      }
    const value = readValue(field, set.slice(at + 1), read)
    if ('fault' in value) return value
    input[name] = value.value
  }
  const missing = slots.filter((slot) => input[slot] === undefined)
  return missing.length > 0
    ? { fault: `${missing.join(' and ')} must be set, as in --set ${missing[0]}=…` }
    : { input }
}
