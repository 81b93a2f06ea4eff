/** The rules for schemas, values and row data. */
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { canonicalJson } from '../../../protocol/rules/canonical-json.ts'
import { evolutionFaults, schemaFaults } from '../../../protocol/tables/definition.ts'
import {
  changedMembers,
  defaultsOf,
  insertedData,
  mergedData,
  visibleData,
} from '../../../protocol/tables/row-data.ts'
import type { ColumnType, TableSchema } from '../../../protocol/tables/schema.ts'
import { exactHits, rowTokens, tokensOf } from '../../../protocol/tables/search.ts'
import {
  comparable,
  compareTexts,
  compareValues,
  instantOf,
  isOfType,
} from '../../../protocol/tables/values.ts'

const areEqual = (type: ColumnType, a: unknown, b: unknown): boolean =>
  isDeepStrictEqual(comparable(type, a), comparable(type, b))
const key = { name: 'key', type: 'string', required: true } as const
const schemaOf = (change: Partial<TableSchema> = {}): TableSchema => ({
  columns: [key, { name: 'note', type: 'string' }],
  identity_column: 'key',
  ...change,
})
const fieldsOf = (faults: readonly { readonly field: string }[]): string[] =>
  faults.map(({ field }) => field)

t.test('schemas', async (t) => {
  const cases: readonly (readonly [change: Partial<TableSchema>, fields: readonly string[]])[] = [
    [{}, []],
    [{ secondary_key_column: 'note' }, []],
    [{ columns: [key, { name: 'at', type: 'date', default: '2026-01-01' }] }, []],
    [{ columns: [key, { name: 'at', type: 'date', default: null }] }, []],
    [{ identity_column: 'other' }, ['schema.identity_column']],
    [{ identity_column: 'note' }, ['schema.identity_column']],
    [{ columns: [{ ...key, type: 'any' }] }, ['schema.identity_column']],
    [{ columns: [{ ...key, default: 'x' }] }, ['schema.columns[0].default']],
    [{ columns: [key, key] }, ['schema.columns[1].name']],
    [{ columns: [key, { name: '__proto__', type: 'any' }] }, ['schema.columns[1].name']],
    [{ secondary_key_column: 'x' }, ['schema.secondary_key_column']],
    [
      { columns: [key, { name: 'n', type: 'number', default: '1' }] },
      ['schema.columns[1].default'],
    ],
    [{ columns: [key, { name: 'n', type: 'any', default: 'x'.repeat(262_144) }] }, ['schema']],
  ]
  for (const [change, fields] of cases)
    t.strictSame(fieldsOf(schemaFaults(schemaOf(change))), fields)
})

t.test('a type changes only without rows', async (t) => {
  const after = schemaOf({ columns: [key, { name: 'note', type: 'any' }] })
  t.strictSame(fieldsOf(evolutionFaults(schemaOf(), after, true)), [])
  t.strictSame(fieldsOf(evolutionFaults(schemaOf(), after, false)), ['schema.columns[1].type'])
})

t.test('types accept JSON values', async (t) => {
  const accepted: Readonly<Record<ColumnType, readonly unknown[]>> = {
    string: ['', 'x'],
    number: [0, -1.5],
    boolean: [true, false],
    date: ['2026-02-28', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5+01:00'],
    object: [{}, { a: [] }],
    array: [[], [1]],
    any: ['', 0, false, {}, []],
  }
  const refused: Readonly<Record<ColumnType, readonly unknown[]>> = {
    string: [0, null],
    number: ['0', Number.NaN, Number.POSITIVE_INFINITY, null],
    boolean: [0, 'true', null],
    date: ['2026-02-29', '2026-1-1', '2026-01-01T24:00:00Z', 'x', 0, null],
    object: [[], null],
    array: [{}, null],
    any: [null, undefined],
  }
  for (const type of Object.keys(accepted) as ColumnType[]) {
    for (const value of accepted[type])
      t.ok(isOfType(type, value), `${type} ${canonicalJson(value)}`)
    for (const value of refused[type])
      t.notOk(isOfType(type, value), `${type} not ${String(value)}`)
  }
})

t.test('values have an order', async (t) => {
  const ascending = [-1, 2, 10, '', 'B', 'a', 'ab', '\uffff', '😀', false, true]
  for (const [i, a] of ascending.entries())
    for (const [j, b] of ascending.entries())
      t.equal(Math.sign(compareValues('any', a, b)), Math.sign(i - j), `${a} and ${b}`)
  t.equal(compareValues('any', {}, [1]), 0)
  t.equal(Math.sign(compareValues('any', true, [])), -1)
  t.equal(compareValues('date', '2026-01-01', '2026-01-01T01:00:00+01:00'), 0)
  t.equal(Math.sign(compareValues('date', '2026-01-02', '2026-01-01T23:59:59Z')), 1)
  t.equal(instantOf('2026-01-01'), 1_767_225_600_000)
  const texts = ['', 'a', 'é', '\ud800', '\uffff', '😀', '😀a', '😁']
  for (const a of texts)
    for (const b of texts)
      t.equal(
        Math.sign(compareTexts(a, b)),
        // Lone surrogates are replaced in UTF-8, so they are not compared.
        a === '\ud800' || b === '\ud800'
          ? Math.sign(compareTexts(a, b))
          : Buffer.compare(Buffer.from(a), Buffer.from(b)),
      )
})

t.test('values are equal', async (t) => {
  t.ok(areEqual('object', { a: 1, b: [{}] }, { b: [{}], a: 1 }))
  t.notOk(areEqual('array', [1, 2], [2, 1]))
  t.ok(areEqual('date', '2026-01-01', '2026-01-01T00:00:00.000Z'))
  t.notOk(areEqual('any', '1', 1))
  t.notOk(areEqual('any', '{}', {}))
})

t.test('data of rows', async (t) => {
  const schema = schemaOf({
    columns: [key, { name: 'n', type: 'number', default: 1 }, { name: 'gone', type: 'string' }],
  })
  const defaults = defaultsOf(schema)
  t.strictSame(insertedData(defaults, { key: 'a' }), { n: 1, key: 'a' })
  t.strictSame(insertedData(defaults, { key: 'a', n: null }), { key: 'a' })
  t.strictSame(mergedData({ key: 'a', n: 1 }, { n: null, gone: 'x' }), { key: 'a', gone: 'x' })
  t.strictSame(
    changedMembers({ a: { x: 1, y: 2 }, b: 1, c: 1 }, { a: { y: 2, x: 1 }, b: 2, d: 1 }),
    ['b', 'c', 'd'],
  )
  const data = { key: 'a', n: 'not a number', extra: 1 }
  t.strictSame(visibleData(schema, data), { key: 'a' })
  t.strictSame(visibleData({ ...schema, open: true }, data), { key: 'a', extra: 1 })
  const whole = { key: 'a' }
  t.equal(visibleData(schema, whole), whole, 'nothing is hidden')
})

t.test('tokens and hits', async (t) => {
  t.strictSame(tokensOf('From-UI_insert Ärger2, 東京!'), ['from', 'ui', 'insert', 'ärger2', '東京'])
  t.strictSame(tokensOf('-- _ !'), [])
  t.strictSame(tokensOf('Cafe\u0301s'), tokensOf('CAF\u00c9S'), 'equivalent forms')
  t.strictSame(tokensOf('ΟΔΌΣ οδόσ'), tokensOf('οδός Οδός'), 'a final sigma is a sigma')
  t.strictSame(tokensOf('İstanbul I\u0307'), ['istanbul', 'i'], 'a dotted I is an I')
  t.strictSame(tokensOf('हिन्दी भाषा'), ['हिन्दी', 'भाषा'], 'vowel signs belong to the word')
  const row = rowTokens({ a: 'from-ui-insert', b: [{ c: 'nested text' }], d: 7 })
  t.strictSame(row, ['from', 'ui', 'insert', 'nested', 'text'])
  t.equal(exactHits(tokensOf('from-ui'), row), 2)
  t.equal(exactHits(tokensOf('ins nested'), row), 1)
  t.equal(exactHits(tokensOf('from from'), row), 1)
  t.equal(exactHits(tokensOf('from other'), row), undefined)
})
