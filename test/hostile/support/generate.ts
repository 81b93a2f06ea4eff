/**
 * Random values and examples that match a schema of the table, so that every row is tested as soon
 * as it is declared.
 */
import fc from 'fast-check'

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly maxProperties?: number
}

/**
 * Generates random values that match a schema.
 * @param known texts that are meaningful to the service, such as ids of records. They are used
 *   where the schema accepts them.
 */
export function fitting(schema: unknown, known: readonly string[] = []): fc.Arbitrary<unknown> {
  const one = schema as Schema
  if (one.anyOf) return fc.oneof(...one.anyOf.map((branch) => fitting(branch, known)))
  if (one.enum) return fc.constantFrom(...one.enum)
  if ('const' in one) return fc.constant(one.const)
  switch (one.type) {
    case 'string':
      return textOf(one, known)
    case 'integer':
      return fc.oneof(
        fc.integer(between(one)),
        fc.constantFrom(one.minimum ?? 0, one.maximum ?? Number.MAX_SAFE_INTEGER),
      )
    case 'number':
      return fc.double({ min: one.minimum ?? -1e9, max: one.maximum ?? 1e9, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'array':
      return listOf(one, known)
    case 'object':
      return recordOf(one, known)
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

const examples = new WeakMap<object, unknown>()
/**
 * Returns an example of a schema with only the required fields. The example is the same in every
 * run.
 */
export function exampleOf(schema: unknown): unknown {
  const key = schema as Schema
  if (!examples.has(key))
    examples.set(key, fc.sample(fitting(required(key)), { numRuns: 1, seed: 7 })[0])
  return structuredClone(examples.get(key))
}
function required(schema: Schema): Schema {
  if (schema.anyOf) return { ...schema, anyOf: schema.anyOf.map(required) }
  if (schema.items) return { ...schema, items: required(schema.items) }
  if (!schema.properties) return schema
  const needed = new Set(schema.required)
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(schema.properties)
        .filter(([name]) => needed.has(name))
        .map(([name, part]) => [name, required(part)]),
    ),
  }
}

const between = ({ minimum = -1_000_000, maximum = 1_000_000 }: Schema) => ({
  min: minimum,
  max: Math.max(minimum, maximum),
})

/** Arbitraries by pattern. Creating one takes much longer than generating a value with it. */
const matching = new Map<string, fc.Arbitrary<string>>()
function textMatching(pattern: RegExp): fc.Arbitrary<string> {
  let texts = matching.get(pattern.source)
  if (!texts) matching.set(pattern.source, (texts = fc.stringMatching(pattern)))
  return texts
}

function textOf(
  { pattern, format, minLength = 0, maxLength = 1_000_000 }: Schema,
  known: readonly string[],
): fc.Arbitrary<string> {
  if (format === 'date-time')
    return fc
      .date({ min: new Date(0), max: new Date('9999-12-31T00:00:00Z'), noInvalidDate: true })
      .map((date) => date.toISOString())
  const form = pattern === undefined ? undefined : new RegExp(pattern, 'u')
  const fits = (text: string) =>
    text.length >= minLength && text.length <= maxLength && (form?.test(text) ?? true)
  const meaning = known.filter(fits)
  const free =
    form !== undefined
      ? textMatching(form).filter(fits)
      : fc.oneof(
          fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 30) }),
          fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, minLength + 8) }),
          fc.constant('x'.repeat(Math.min(maxLength, 5000))),
        )
  return meaning.length > 0 ? fc.oneof(free, fc.constantFrom(...meaning)) : free
}

function listOf(
  { items = {}, minItems = 0, maxItems = 5, uniqueItems }: Schema,
  known: readonly string[],
): fc.Arbitrary<unknown[]> {
  const size = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, 5)) }
  const item = fitting(items, known)
  return uniqueItems
    ? fc.uniqueArray(item, { ...size, selector: (value) => JSON.stringify(value) })
    : fc.array(item, size)
}

function recordOf(
  { properties, required = [], patternProperties, maxProperties = 4 }: Schema,
  known: readonly string[],
): fc.Arbitrary<unknown> {
  const [rest] = Object.values(patternProperties ?? {})
  if (!properties)
    return fc.dictionary(
      fc
        .string({ minLength: 1, maxLength: 12 })
        .filter((name) => name !== '__proto__' && name !== 'constructor'),
      rest ? fitting(rest, known) : fc.jsonValue({ maxDepth: 2 }),
      { maxKeys: Math.min(maxProperties, 4), noNullPrototype: true },
    )
  const members = Object.fromEntries(
    Object.entries(properties).map(([name, part]) => [name, fitting(part, known)]),
  )
  return fc.record(members, { requiredKeys: [...required], noNullPrototype: true })
}
