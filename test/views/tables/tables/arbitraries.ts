/**
 * Generates random schemas, rows, queries and changes of tables, with values that often coincide.
 */
import fc from 'fast-check'
import type { JsonObject } from '../../../../protocol/common.ts'
import type { QueryRows, SearchRows, TableSchema } from '../../../../protocol/tables/schema.ts'

const long = 'x'.repeat(600)
const texts = [
  '',
  'a',
  'A',
  'ab',
  'a\0b',
  'a\0',
  'é',
  'z',
  '\uffff',
  '😀',
  '\ud83d',
  `${long}a`,
  `${long}b`,
]
const numbers = [-1.5, -0, 0, 1, 2, 10, 1e300, -1e300, 5e-324]
const dates = [
  '2024-01-01',
  '2024-01-01T00:00:00Z',
  '2024-01-01T01:00:00+01:00',
  '1969-12-31T23:59:59.999Z',
  '2024-02-29T12:00:00.5Z',
]
const objects = [{}, { a: 1, b: [2] }, { b: [2], a: 1 }, { a: 'nested words' }]
const arrays = [[], [1], [[1]], ['words', 1]]
const values = {
  string: texts,
  number: numbers,
  boolean: [true, false],
  date: dates,
  object: objects,
  array: arrays,
  any: [...texts.slice(0, 4), ...numbers, true, false, ...objects, ...arrays, dates[1]],
} as const
type Type = keyof typeof values
const types = Object.keys(values) as Type[]

/** The columns that a schema may have, in addition to the identity column. */
const columns: readonly { name: string; type: Type }[] = [
  ...types.map((type) => ({ name: `c_${type}`, type })),
  { name: 'second', type: 'string' },
  // A declared column takes precedence over the system field of the same name.
  { name: 'version', type: 'any' },
  { name: 'id', type: 'number' },
]
const fields = [...columns.map(({ name }) => name), 'key', 'created_at', 'updated_at', 'extra']

const secondary = fc.boolean()
export const schemas: fc.Arbitrary<TableSchema> = fc
  .record({ shown: fc.subarray([...columns]), open: fc.boolean(), secondary })
  .map(({ shown, open, secondary }) => ({
    columns: [
      { name: 'key', type: 'string', required: true },
      ...(secondary ? [{ name: 'second', type: 'string' as const }] : []),
      ...shown.filter(({ name }) => name !== 'second'),
    ],
    identity_column: 'key',
    ...(secondary && { secondary_key_column: 'second' }),
    open,
  }))
/** Generates schemas into which the given schema may evolve. */
export const evolved = (schema: TableSchema): fc.Arbitrary<TableSchema> =>
  fc.record({ shown: fc.subarray([...columns]), open: fc.boolean() }).map(({ shown, open }) => ({
    ...schema,
    columns: [
      ...schema.columns.filter(({ name }) => name === 'key' || name === 'second'),
      ...shown.filter(({ name }) => name !== 'second'),
    ],
    open,
  }))

const words = [
  'open',
  'opened',
  'o',
  'Übung',
  'übung',
  '東京',
  'x²',
  'n_1',
  'a-b',
  'e\u0301',
  '😀',
  '٣',
]
const phrase = fc.array(fc.constantFrom(...words), { maxLength: 4 }).map((some) => some.join(' '))
const textOrValue = (type: Type): fc.Arbitrary<unknown> =>
  type === 'string'
    ? fc.oneof(fc.constantFrom(...texts), phrase)
    : fc.constantFrom<unknown>(...values[type])
/** Data for a row, without the identity column. It is valid in every schema of `schemas`. */
const data: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      ...Object.fromEntries(columns.map(({ name, type }) => [name, textOrValue(type)])),
      extra: fc.oneof(textOrValue('any'), phrase),
    },
    { requiredKeys: [] },
  )
  .map((one) => ({ ...one }) as JsonObject)

const typeOf = (name: string): Type =>
  columns.find((column) => column.name === name)?.type ??
  (name === 'key' ? 'string' : name.endsWith('_at') ? 'date' : 'any')
const operators = ['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$exists'] as const
const field = fc.constantFrom(...fields)
const times = [0, 1, 2, 5].map((ms) => new Date(Date.UTC(2031, 0, 1) + ms).toISOString())
const wanted = (name: string): fc.Arbitrary<unknown> =>
  name === 'key'
    ? fc.constantFrom('key0', 'key1', 'key2', 'key3')
    : name.endsWith('_at')
      ? fc.constantFrom(...times)
      : textOrValue(typeOf(name))
const condition = (name: string) =>
  fc.constantFrom(...operators).chain((operator): fc.Arbitrary<[string, unknown]> => {
    const value =
      operator === '$exists'
        ? fc.boolean()
        : operator === '$in'
          ? fc.array(fc.oneof(wanted(name), fc.constant(null)), { maxLength: 4 })
          : operator === '$eq' || operator === '$ne'
            ? fc.oneof({ weight: 6, arbitrary: wanted(name) }, fc.constant(null))
            : wanted(name)
    return value.map((one) => [operator, one])
  })
const filters = fc
  .array(
    field.chain((name) =>
      fc
        .array(condition(name), { minLength: 1, maxLength: 2 })
        .map((conditions): [string, unknown] => [name, Object.fromEntries(conditions)]),
    ),
    { maxLength: 2 },
  )
  .map((members) => Object.fromEntries(members))
const sorts = fc.uniqueArray(
  fc.record({ field, order: fc.constantFrom('asc' as const, 'desc' as const) }),
  { maxLength: 3, selector: (one) => one.field },
)
export const queries: fc.Arbitrary<QueryRows> = fc.record({
  filter: filters,
  sort: sorts,
  limit: fc.integer({ min: 1, max: 7 }),
})
export const searches: fc.Arbitrary<SearchRows> = fc.record({
  query: fc
    .array(
      fc.oneof(fc.constantFrom(...words), fc.constantFrom('op', 'u', '東', 'n', 'W', 'nest')),
      {
        minLength: 1,
        maxLength: 7,
      },
    )
    .map((some) => some.join(' ')),
  filter: fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, filters),
  limit: fc.integer({ min: 1, max: 7 }),
})

/**
 * A change to the rows, a new order, or maintenance. `row` selects one of the existing rows; `at`
 * may decrease.
 */
export type Step =
  | { readonly do: 'insert'; readonly at: number; readonly rows: readonly JsonObject[] }
  | { readonly do: 'update'; readonly at: number; readonly row: number; readonly data: JsonObject }
  | { readonly do: 'delete'; readonly row: number }
  | { readonly do: 'order'; readonly sort: NonNullable<QueryRows['sort']> }
  | { readonly do: 'tidy' }
const at = fc.integer({ min: 0, max: 5 })
const row = fc.nat({ max: 1000 })
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('insert' as const),
        at,
        rows: fc.array(data, { minLength: 1, maxLength: 4 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('update' as const), at, row, data }) },
    fc.record({ do: fc.constant('delete' as const), row }),
    { weight: 2, arbitrary: fc.record({ do: fc.constant('order' as const), sort: sorts }) },
    fc.record({ do: fc.constant('tidy' as const) }),
  ),
  { minLength: 4, maxLength: 20 },
)
