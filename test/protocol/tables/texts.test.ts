/** The conversion of rendered text to values: data, filters and parameters. */
import fc from 'fast-check'
import t from 'tap'
import type { TableSchema } from '../../../protocol/tables/schema.ts'
import {
  dataOfTexts,
  filterOfTexts,
  parametersOfTexts,
  valueOfText,
} from '../../../protocol/tables/texts.ts'

const schema: TableSchema = {
  identity_column: 'name',
  open: true,
  columns: [
    { name: 'name', type: 'string', required: true },
    { name: 'n', type: 'number' },
    { name: 'ok', type: 'boolean' },
    { name: 'due', type: 'date' },
    { name: 'more', type: 'object' },
    { name: 'list', type: 'array' },
    { name: 'free', type: 'any' },
  ],
}

t.test('texts become values of the types of their columns', async (t) => {
  t.strictSame(
    dataOfTexts(schema, {
      name: '1',
      n: '1.5',
      ok: 'true',
      due: '2026-01-01',
      more: '{"a": 1}',
      list: '[1]',
      free: '2',
      other: '3',
    }),
    {
      name: '1',
      n: 1.5,
      ok: true,
      due: '2026-01-01',
      more: { a: 1 },
      list: [1],
      free: '2',
      other: '3',
    },
  )
})
t.test('the empty text is no value, except where texts are values', async (t) => {
  t.strictSame(dataOfTexts(schema, { name: '', n: '', ok: ' ', due: '', list: '', free: '' }), {
    name: '',
    n: null,
    ok: null,
    due: null,
    list: null,
    free: '',
  })
})
t.test('a text that is no value of the type stays a text', async (t) => {
  t.strictSame(dataOfTexts(schema, { n: 'many', ok: '1', more: '[]', list: '{}' }), {
    n: 'many',
    ok: '1',
    more: '[]',
    list: '{}',
  })
})
t.test('operands of filters are read by their column and operator', async (t) => {
  t.strictSame(
    filterOfTexts(schema, {
      name: '1',
      n: { $gte: '2', $in: '[1, 2]', $exists: 'true' },
      ok: 'false',
      version: { $in: ['1', 2] },
      created_at: '2026-01-01',
    }),
    {
      name: '1',
      n: { $gte: 2, $in: [1, 2], $exists: true },
      ok: false,
      version: { $in: [1, 2] },
      created_at: '2026-01-01',
    },
  )
})
t.test('parameters are read by their schema; empty ones are absent', async (t) => {
  const properties = {
    table: { type: 'string' },
    data: { type: 'object' },
    limit: { type: 'integer' },
    cursor: { type: 'string' },
  }
  t.strictSame(
    parametersOfTexts({ properties }, { table: '1', data: '{"n": "1"}', limit: '5', cursor: '' }),
    { table: '1', data: { n: '1' }, limit: 5 },
  )
})
t.test('a rendered value of a number, boolean, object or array is read back', async () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc
          .double({ noNaN: true, noDefaultInfinity: true })
          .map((value) => ['number', Object.is(value, -0) ? 0 : value] as const),
        fc.boolean().map((value) => ['boolean', value] as const),
        fc.dictionary(fc.string(), fc.jsonValue()).map((value) => ['object', value] as const),
        fc.array(fc.jsonValue()).map((value) => ['array', value] as const),
      ),
      ([type, value]) => {
        const text = JSON.stringify(value)
        return JSON.stringify(valueOfText(type, text)) === text
      },
    ),
  )
})
