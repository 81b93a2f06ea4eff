/** Files of rows: reading CSV and JSON Lines, inferring column types, and writing values. */
import { Readable } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { dataOf, inferColumns } from '../../../../client/cli/tables/columns.ts'
import { headerOf, recordOf } from '../../../../client/cli/tables/lines.ts'
import {
  type FileFormat,
  type FileRecord,
  formatOf,
  readRecords,
} from '../../../../client/cli/tables/records.ts'
import type { ColumnType } from '../../../../protocol/tables/schema.ts'

async function recordsOf(
  text: string,
  format: FileFormat,
  spreadsheet = false,
): Promise<FileRecord[]> {
  const records: FileRecord[] = []
  for await (const record of readRecords(Readable.from([text]), format, spreadsheet))
    records.push(record)
  return records
}
const typesOf = async (text: string, format: FileFormat, identity = 'id') =>
  Object.fromEntries(
    inferColumns(await recordsOf(text, format), format, identity).map(({ name, type }) => [
      name,
      type,
    ]),
  )

t.test('the name of a file implies its format', async (t) => {
  t.strictSame(['a.csv', 'a.b.JSONL', 'x.ndjson', 'x.json', 'csv'].map(formatOf), [
    'csv',
    'jsonl',
    'jsonl',
    undefined,
    'csv',
  ])
})

t.test('CSV is read with quotes, line breaks, a byte order mark and empty fields', async (t) => {
  t.strictSame(
    await recordsOf('\ufeffid,note,n\r\na,"one, ""two""\nthree",1\r\n\r\nb,,""\r\n', 'csv'),
    [
      { line: 3, values: { id: 'a', note: 'one, "two"\nthree', n: '1' } },
      { line: 5, values: { id: 'b', note: undefined, n: '' } },
    ],
  )
})

t.test('a file that is not in its format is refused with the line', async (t) => {
  await t.rejects(recordsOf('id,n\na,1\nb\n', 'csv'), { name: 'Mistake', message: /line 3/ })
  await t.rejects(recordsOf('id,id\na,1\n', 'csv'), { name: 'Mistake', message: /"id" twice/ })
  for (const separator of [';', '\t'])
    await t.rejects(recordsOf(`id${separator}n\na${separator}1\n`, 'csv'), {
      name: 'Mistake',
      message: /seem to be separated by .*Save the file with commas/,
    })
  await t.rejects(recordsOf('{"a":1}\n\n{a}\n', 'jsonl'), { name: 'Mistake', message: /^Line 3 / })
  await t.rejects(recordsOf('[1]\n', 'jsonl'), { name: 'Mistake', message: /not a JSON object/ })
})

t.test('a file with another encoding than UTF-8 is refused with the line', async (t) => {
  const read = async (bytes: Uint8Array[], format: FileFormat) => {
    const records: FileRecord[] = []
    for await (const record of readRecords(Readable.from(bytes), format)) records.push(record)
    return records.map(({ values }) => values)
  }
  const latin = Buffer.from('id,name\na,Meier\nb,Müller\n', 'latin1')
  const message = /^Line 3 is not UTF-8/
  await t.rejects(read([latin], 'csv'), { name: 'Mistake', message })
  await t.rejects(read([Buffer.from('{}\n\n"ü"', 'latin1')], 'jsonl'), { name: 'Mistake', message })
  await t.rejects(read([Buffer.from('\ufeffid,name\n', 'utf16le')], 'csv'), { name: 'Mistake' })
  for (const [format, text] of [
    ['csv', 'id,name\r\na,"ü€\u{1f600}\u2028"\r\n'],
    ['jsonl', '{"id":"a","name":"ü€\u{1f600}\u2028"}\r\n\r\n'],
  ] as const) {
    const bytes = [...Buffer.from(text)].map((byte) => Uint8Array.of(byte))
    t.same(await read(bytes, format), [{ id: 'a', name: 'ü€\u{1f600}\u2028' }], 'cut anywhere')
  }
})

t.test('an integer that a number cannot represent is refused with the line', async (t) => {
  const account = '12345678901234567890'
  const columns = new Map<string, ColumnType>([
    ['n', 'number'],
    ['any', 'any'],
    ['list', 'array'],
    ['s', 'string'],
  ])
  for (const values of [{ n: account }, { any: `-${account}` }, { list: `["1", ${account}]` }])
    t.throws(() => dataOf({ line: 7, values }, columns, 'csv'), {
      name: 'Mistake',
      message: /^Line 7: .*12345678901234567890\./,
    })
  await t.rejects(recordsOf(`{"a":1}\n{"a":${account}}\n`, 'jsonl'), { message: /^Line 2: / })
  await t.rejects(recordsOf('{"a":[-1.5E+400]}\n', 'jsonl'), { message: /^Line 1: .*-1\.5E\+400/ })
  t.throws(() => dataOf({ line: 7, values: { any: '1e999' } }, columns, 'csv'), /^Line 7: /)
  t.equal((await recordsOf('{"a":1e300,"b":"1e999","c":1e-999}\n', 'jsonl')).length, 1)
  t.same(
    await recordsOf(`{"a":"x ${account}","b":0.${account}}\n`, 'jsonl').then(([one]) => one?.line),
    1,
  )
  const kept = {
    n: '9007199254740992',
    s: account,
    any: `"${account}"`,
    list: '[12345678901234567000]',
  }
  t.same(dataOf({ line: 1, values: kept }, columns, 'csv'), {
    n: 2 ** 53,
    s: account,
    any: account,
    list: [Number(account)],
  })
})

t.test('types are inferred from all values of a column', async (t) => {
  t.strictSame(
    await typesOf(
      'id,n,zip,yes,day,tags,meta,mix,none,big\n' +
        '1,1.5,007,true,2026-11-25,"[1]","{""a"":1}",1,,1234567890123456\n' +
        '2,-2,123,false,2026-11-25T10:00:00Z,[],{},x,,2\n' +
        '3,,,,,,,,,\n',
      'csv',
    ),
    {
      id: 'string',
      n: 'number',
      zip: 'string',
      yes: 'boolean',
      day: 'date',
      tags: 'array',
      meta: 'object',
      mix: 'string',
      none: 'string',
      big: 'string',
    },
  )
  t.strictSame(
    await typesOf(
      '{"id":"a","n":1,"s":"1","day":"2026-11-25","mix":1,"none":null,"late":"2026-11-25"}\n' +
        '{"id":"b","mix":"x","late":"soon"}\n',
      'jsonl',
    ),
    {
      id: 'string',
      n: 'number',
      s: 'string',
      day: 'date',
      mix: 'any',
      none: 'any',
      late: 'string',
    },
  )
})

t.test('a text that is not a value of its column is refused', async (t) => {
  const columns = new Map<string, ColumnType>([
    ['n', 'number'],
    ['yes', 'boolean'],
    ['meta', 'object'],
  ])
  for (const values of [{ n: 'x' }, { n: '' }, { yes: 'yes' }, { meta: '[1]' }])
    t.throws(() => dataOf({ line: 7, values }, columns, 'csv'), {
      name: 'Mistake',
      message: /^Line 7: /,
    })
  t.strictSame(dataOf({ line: 1, values: { n: undefined, yes: 'true' } }, columns, 'csv'), {
    yes: true,
  })
})

t.test('what is written as CSV is read as the same data', async (t) => {
  const json = fc.jsonValue({ maxDepth: 2 }).filter((value) => value !== null)
  const columns = {
    s: fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: fc.constantFrom(..."='+-@1\t\n") }),
    ),
    n: fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (n === 0 ? 0 : n)),
    b: fc.boolean(),
    o: fc.dictionary(fc.string(), json, { noNullPrototype: true }).map((o) => structuredClone(o)),
    l: fc.array(json),
    a: json,
  } as const
  const types = new Map<string, ColumnType>([
    ['s', 'string'],
    ['n', 'number'],
    ['b', 'boolean'],
    ['o', 'object'],
    ['l', 'array'],
    ['a', 'any'],
  ])
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record(columns, { requiredKeys: [], noNullPrototype: true }), { minLength: 1 }),
      fc.boolean(),
      async (rows, spreadsheet) => {
        const all = [...types].map(([name, type]) => ({ name, type }))
        const text = [
          headerOf('csv', all),
          ...rows.map((row) => recordOf(row, 'csv', all, spreadsheet)),
        ].join('\n')
        const read = await recordsOf(text, 'csv', spreadsheet)
        t.strictSame(
          read.map((record) => JSON.stringify(dataOf(record, types, 'csv'))),
          rows.map((row) => JSON.stringify(row)),
        )
      },
    ),
    { numRuns: 50 },
  )
})

t.test('CSV for spreadsheet programs has no formulas', async (t) => {
  const written = (s: unknown) =>
    recordOf({ s }, 'csv', [{ name: 's', type: 'any' }], true).replace(/^"|"$/g, '')
  for (const text of [
    "=cmd|' /C calc'!A0",
    '+1+cmd',
    '-2+3',
    '@SUM(1)',
    '\t=1',
    '\r=1',
    '\n=1',
    '＝1',
    "'=1",
  ])
    t.equal(written(text), `'${text}`)
  for (const value of [-5, '-x'.slice(1), 'a=1', "it's", ' =1'])
    t.equal(written(value), String(value))
  t.equal(recordOf({ s: '-5' }, 'csv', [{ name: 's', type: 'string' }], true), '-5')
  t.equal(recordOf({ s: '=1' }, 'csv', [{ name: 's', type: 'string' }]), '=1', 'for programs')
})
