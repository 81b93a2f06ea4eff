/** Parts of the table, artifact and environment pages that need no browser. */
import fc from 'fast-check'
import t from 'tap'
import { tagLines, tagsOfLines } from '../../console/form/tag-lines.ts'
import { withFrame } from '../../console/pages/environments/followed-log.ts'
import { repositoriesOf } from '../../console/pages/environments/state.ts'
import { linesOf } from '../../console/pages/tables/files/export.ts'
import {
  bulksOf,
  NEW_COLUMN,
  newColumns,
  planImport,
  readFile,
  suggested,
  textOf,
  updatesOf,
} from '../../console/pages/tables/files/plan.ts'
import {
  conditionsOf,
  filterOf,
  operatorsOf,
  parametersOf,
  readConditions,
  readSort,
  rowQueryOf,
  toggledSort,
  viewOf,
  writeConditions,
  writeSort,
} from '../../console/pages/tables/rows/filter.ts'
import { cellAfterKey, gridAction, nextCell } from '../../console/pages/tables/rows/moves.ts'
import { joinRows, type TableRow } from '../../console/pages/tables/rows/rows.ts'
import { editedText, isLong, shownText, typedValue } from '../../console/pages/tables/values.ts'
import { csvLine, readCsv } from '../../console/preview/csv.ts'
import { looksLikeText, mediaTypeOf, previewKind } from '../../console/preview/kind.ts'
import { diffTone } from '../../console/preview/lines.tsx'
import { readStart } from '../../console/preview/read.ts'
import { planQuery } from '../../protocol/tables/query.ts'
import type { TableSchema } from '../../protocol/tables/schema.ts'

const schema: TableSchema = {
  identity_column: 'number',
  columns: [
    { name: 'number', type: 'string', required: true },
    { name: 'amount', type: 'number' },
    { name: 'paid', type: 'boolean' },
    { name: 'due', type: 'date' },
    { name: 'address', type: 'object' },
  ],
}

t.test('written CSV is read back unchanged', async (t) => {
  const field = fc.option(fc.string({ maxLength: 8, unit: fc.constantFrom(...'a",;\n\r\t é') }), {
    nil: undefined,
  })
  fc.assert(
    fc.property(fc.array(fc.array(field, { minLength: 2, maxLength: 4 })), (records) => {
      const text = records.map(csvLine).join('\n')
      t.strictSame(
        readCsv(text, ',').map(({ fields }) => fields),
        records,
      )
    }),
    { numRuns: 60 },
  )
  t.strictSame(readCsv('\uFEFFa;b\r\n\r\n1;"x\ny"\r\n2;3\r\n'), [
    { line: 1, fields: ['a', 'b'] },
    { line: 3, fields: ['1', 'x\ny'] },
    { line: 5, fields: ['2', '3'] },
  ])
  t.equal(readCsv('a\nb\nc', ',', 2).length, 2)
})

t.test('a typed value has the type of its column, or a fault', async (t) => {
  const value = (text: string, type: 'number' | 'boolean' | 'date' | 'object' | 'any' | 'string') =>
    typedValue(text, { type })
  t.strictSame(value('1.5', 'number'), { value: 1.5 })
  t.strictSame(value('one', 'number'), { fault: 'must be a finite number' })
  t.strictSame(value('true', 'boolean'), { value: true })
  t.strictSame(value('2026-02-30', 'date'), {
    fault: 'must be an RFC 3339 time or a date YYYY-MM-DD',
  })
  t.strictSame(value('{"a":1}', 'object'), { value: { a: 1 } })
  t.strictSame(value('null', 'any'), { value: 'null' }, 'as on the command line')
  t.strictSame(value('', 'number'), { value: null }, 'an empty text removes the value')
  t.strictSame(typedValue('', { type: 'string', required: true }), { fault: 'is required' })
  for (const [type, one] of [
    ['any', '42'],
    ['any', 42],
    ['string', ' x '],
    ['object', { a: [1] }],
    ['number', 0.1],
  ] as const)
    t.strictSame(typedValue(editedText(one, type), { type }), { value: one })
  t.equal(shownText('x'.repeat(1_000_000)).length, 201)
  t.equal(isLong('a\nb', 'string'), true)
  t.equal(isLong('a', 'string'), false)
})

t.test('conditions of the address become a query that the service accepts', async (t) => {
  const list = [
    { field: 'amount', operator: 'gte', text: '10' },
    { field: 'amount', operator: 'lt', text: '20' },
    { field: 'paid', operator: 'eq', text: 'true' },
    { field: 'address', operator: 'set', text: '' },
    { field: 'created_at', operator: 'gt', text: '2026-01-01' },
  ] as const
  t.strictSame(readConditions(writeConditions(list)), list)
  const { filter, faults } = filterOf(list, schema)
  t.equal(faults.size, 0)
  t.strictSame(filter, {
    amount: { $gte: 10, $lt: 20 },
    paid: { $eq: true },
    address: { $exists: true },
    created_at: { $gt: '2026-01-01' },
  })
  t.notOk('faults' in planQuery(schema, { filter }))
  const wrong = filterOf(
    [
      { field: 'amount', operator: 'gt', text: 'much' },
      { field: 'amount', operator: 'gt', text: '1' },
      { field: 'amount', operator: 'gt', text: '2' },
      { field: 'none', operator: 'eq', text: '1' },
    ],
    schema,
  )
  t.strictSame([...wrong.faults.keys()], [0, 2, 3])
  t.strictSame(wrong.filter, { amount: { $gt: 1 } })
  for (const text of ['', '{', '{}', '[1]', '[["a","drop","x"]]'])
    t.strictSame(readConditions(text), [])
  t.strictSame(operatorsOf('object'), ['set', 'unset'])
  const asked = rowQueryOf(new URLSearchParams({ q: ' tea ', mode: 'hybrid', sort: '-x' }), schema)
  t.strictSame(asked.query, { search: { query: 'tea', mode: 'hybrid' } })
})

t.test('a column is sorted up, down and not at all', async (t) => {
  let sort = toggledSort([], 'amount', false)
  t.equal(writeSort(sort), 'amount')
  sort = toggledSort(sort, 'amount', false)
  t.equal(writeSort(sort), '-amount')
  t.equal(writeSort(toggledSort(sort, 'number', true)), '-amount,number')
  t.strictSame(toggledSort(sort, 'amount', true), [])
  t.strictSame(readSort('-amount,number,,-'), [
    { field: 'amount', order: 'desc' },
    { field: 'number', order: 'asc' },
  ])
})

t.test('keys move in the grid and never leave it', async (t) => {
  const size = { rows: 3, cols: 4, screen: 2 }
  const at = { row: 0, col: 1 }
  const key = (key: string, ctrl = false) => cellAfterKey(at, { key, ctrl }, size)
  t.strictSame(key('ArrowUp'), { row: -1, col: 1 }, 'to the head')
  t.strictSame(key('End', true), { row: 2, col: 3 })
  t.strictSame(key('PageDown'), { row: 2, col: 1 })
  t.equal(key('x'), undefined)
  const all = [
    'ArrowUp',
    'ArrowDown',
    'ArrowLeft',
    'ArrowRight',
    'Home',
    'End',
    'PageUp',
    'PageDown',
  ]
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...all), fc.boolean())), (keys) => {
      let place = at
      for (const [one, ctrl] of keys) place = cellAfterKey(place, { key: one, ctrl }, size) ?? place
      return place.row >= -1 && place.row < 3 && place.col >= 0 && place.col < 4
    }),
    { numRuns: 50 },
  )
  t.strictSame(nextCell({ row: 0, col: 3 }, 1, 4), { row: 1, col: 1 })
  t.strictSame(nextCell({ row: 1, col: 1 }, -1, 4), { row: 0, col: 3 })
})

t.test('a key edits, selects or opens the active cell', async (t) => {
  const size = { rows: 3, cols: 4, screen: 2 }
  const kind = (
    key: string,
    {
      at = [0, 1],
      ctrl = false,
      shift = false,
      editable = true,
      hasSelection = false,
    }: {
      readonly at?: readonly [row: number, col: number]
      readonly ctrl?: boolean
      readonly shift?: boolean
      readonly editable?: boolean
      readonly hasSelection?: boolean
    } = {},
  ) => {
    const active = { row: at[0], col: at[1] }
    return gridAction({ key, ctrl, shift }, { active, size, editable, hasSelection })?.kind
  }
  t.equal(kind('ArrowDown'), 'move')
  t.equal(kind('Enter'), 'edit')
  t.equal(kind('Enter', { shift: true }), 'open')
  t.equal(kind('Enter', { editable: false }), 'open')
  t.equal(kind('Enter', { at: [0, 0] }), 'open')
  t.equal(kind('Enter', { at: [-1, 1] }), 'sort')
  t.equal(kind('x'), 'type')
  t.equal(kind('x', { at: [0, 0] }), undefined, 'a row number is not a value')
  t.equal(kind('x', { editable: false }), undefined)
  t.equal(kind('c', { ctrl: true }), 'copy')
  t.equal(kind('Delete'), 'erase')
  t.equal(kind('Delete', { hasSelection: true }), 'delete')
  t.equal(kind(' '), 'toggle')
  t.equal(kind('Escape'), undefined)
  t.equal(kind('Escape', { hasSelection: true }), 'deselect')
})

t.test('reloading the first rows keeps the rows after them', async (t) => {
  const of = (...ids: string[]) => ids.map((id) => ({ id }) as TableRow)
  const ids = (rows: readonly TableRow[]) => rows.map(({ id }) => id).join('')
  t.equal(ids(joinRows(of('a', 'b', 'c', 'd'), of('x', 'a', 'b'))), 'xabcd')
  t.equal(ids(joinRows(of('a', 'b'), of('c'))), 'c')
})

t.test('an import maps columns, converts values and names the lines of faults', async (t) => {
  const file = readFile(
    'x.csv',
    'Number,amount,Paid?,2nd note\nA,1,true,x\nB,many,false,\n,3,true,\n',
  )
  if (!file) throw new Error('the file has rows')
  t.strictSame(suggested(file, schema), ['number', 'amount', 'paid', ''])
  const added = newColumns(file, schema)
  t.strictSame(added.get(3), { name: '_2nd_note', type: 'string' })
  const { rows, faults } = planImport(file, ['number', 'amount', 'paid', NEW_COLUMN], schema, added)
  t.strictSame(rows, [{ line: 2, data: { number: 'A', amount: 1, paid: true, _2nd_note: 'x' } }])
  t.strictSame(
    faults.map(({ line }) => line),
    [3, 4],
  )
  t.equal(readFile('x.csv', 'a,b\n'), undefined)
  const many = Array.from({ length: 1201 }, (_, line) => ({ line, data: {} }))
  t.strictSame(
    bulksOf(many).map((bulk) => bulk.length),
    [500, 500, 201],
  )
  t.strictSame(linesOf([{ data: { number: 'a,b', amount: 1 } }], 'csv', schema), ['"a,b",1,,,'])
})

t.test('a record with more fields than the header is a fault', async (t) => {
  const file = readFile('x.csv', 'number,name,note\nA,Smith, John,x\nB,Doe,y,,\nC\n')
  if (!file) throw new Error('no rows')
  const { rows, faults } = planImport(file, ['number', '', ''], schema, new Map())
  t.same(
    rows.map(({ data }) => data),
    [{ number: 'B' }, { number: 'C' }],
  )
  t.match(faults, [{ line: 2, message: /more than 3 fields/ }])
})

t.test('an empty field of a new row has no value, even if its column has a default', async (t) => {
  const columns: TableSchema['columns'] = [
    { name: 'number', type: 'string', required: true },
    { name: 'state', type: 'string', default: 'open' },
    { name: 'rank', type: 'number', required: true, default: 1 },
  ]
  const file = readFile('x.csv', 'number,state,rank\nA,,\nB,"",2\n')
  if (!file) throw new Error('no rows')
  const planned = (update: boolean) =>
    planImport(
      file,
      ['number', 'state', 'rank'],
      { identity_column: 'number', columns },
      new Map(),
      update,
    ).rows.map(({ data }) => data)
  t.same(planned(false), [
    { number: 'A', state: null },
    { number: 'B', state: '', rank: 2 },
  ])
  t.same(planned(true), [{ number: 'A' }, { number: 'B', state: '', rank: 2 }])
})

t.test('updates of one identity never run at the same time', async (t) => {
  const rows = 'abcacdefghijj'.split('').map((number, line) => ({ line, data: { number } }))
  t.same(
    updatesOf(rows, 'number').map((group) => group.map(({ data }) => data.number).join('')),
    ['abc', 'acdefg', 'hij', 'j'],
  )
  t.same(updatesOf([], 'number'), [])
})

t.test('a file with another encoding than UTF-8 is not read', async (t) => {
  const bytesOf = (text: string, encoding: BufferEncoding): ArrayBuffer =>
    new Uint8Array(Buffer.from(text, encoding)).buffer
  t.equal(textOf(bytesOf('a,Müller', 'utf8')), 'a,Müller')
  t.equal(textOf(bytesOf('a,Müller', 'latin1')), undefined)
})

t.test('an exported file has no formulas, and is imported as the same rows', async (t) => {
  const rows = ['=cmd|1', "'=x", '-5', '@a', 'plain'].map((number) => ({
    data: { number, amount: -1 },
  }))
  const lines = linesOf(rows, 'csv', schema)
  t.strictSame(lines.slice(0, 3), ["'=cmd|1,-1,,,", "''=x,-1,,,", '-5,-1,,,'])
  const file = readFile('x.csv', ['number,amount,paid,due,address', ...lines].join('\n'))
  if (!file) throw new Error('no rows')
  const plan = planImport(file, suggested(file, schema), schema, new Map())
  t.strictSame(
    plan.rows,
    rows.map(({ data }, index) => ({ line: index + 2, data })),
  )
  t.strictSame(linesOf(rows.slice(0, 1), 'jsonl', schema), ['{"number":"=cmd|1","amount":-1}'])
})

t.test('files are shown by type, then by name', async (t) => {
  for (const [mime, name, kind] of [
    ['image/png', 'x', 'image'],
    ['application/octet-stream', 'a/b.PNG', 'image'],
    ['text/plain', 'x.diff', 'diff'],
    ['application/vnd.api+json', 'x', 'json'],
    ['text/html; charset=utf-8'.split(';')[0] ?? '', 'x.png', 'html'],
    ['application/zip', 'x.zip', 'none'],
    ['', 'constructor', 'none'],
  ] as const)
    t.equal(previewKind(mime, name), kind, `${mime} ${name}`)
  t.equal(mediaTypeOf('image', '', 'x.svg'), 'image/svg+xml')
  t.equal(mediaTypeOf('pdf', 'text/html', 'x'), 'application/pdf')
  t.equal(looksLikeText(new TextEncoder().encode('é')), true)
  t.equal(looksLikeText(new Uint8Array([0xff, 0xfe])), false)
  t.strictSame(['+a', '-b', '+++ c', ' d'].map(diffTone), ['good', 'bad', 'info', undefined])
})

t.test('no more than the limit of a file is read', async (t) => {
  const answer = (text: string) => new Response(text)
  const whole = await readStart(answer('hello'), 10)
  t.strictSame([new TextDecoder().decode(whole.bytes), whole.complete], ['hello', true])
  const part = await readStart(answer('hello'), 2)
  t.strictSame([new TextDecoder().decode(part.bytes), part.complete], ['he', false])
})

t.test('tags and repositories are entered as lines', async (t) => {
  t.strictSame(tagsOfLines(' team = sales \n\nflag\n'), { team: 'sales', flag: '' })
  t.equal(tagLines({ team: 'sales' }), 'team=sales')
  t.strictSame(repositoriesOf('a/b push\nc/d'), [
    { full_name: 'a/b', push: true },
    { full_name: 'c/d', push: false },
  ])
})

t.test('a saved view restores the filter, the order, the search and the columns', async (t) => {
  const asked = (address: string) => rowQueryOf(new URLSearchParams(address), schema)
  for (const { filter, sort = '', q = '', mode = '', columns = '' } of [
    { filter: [] },
    {
      filter: [
        ['amount', 'gte', '3'],
        ['amount', 'lt', '9'],
        ['paid', 'eq', 'true'],
        ['due', 'unset', ''],
      ],
      sort: '-amount,number',
      columns: 'number,amount',
    },
    { filter: [['number', 'ne', 'A']], q: 'blue', mode: 'hybrid' },
  ]) {
    const parameters = {
      filter: filter.length === 0 ? '' : JSON.stringify(filter),
      sort,
      q,
      mode,
      columns,
    }
    const stored = viewOf('table_1', asked(String(new URLSearchParams(parameters))), columns)
    t.equal(stored.filter.table_id, 'table_1')
    t.strictSame(parametersOf({ id: 'svw_1', ...stored }), {
      ...parameters,
      view: 'svw_1',
      row: '',
    })
  }
  t.strictSame(conditionsOf({ amount: 3, number: { $in: ['A'] } }), [
    { field: 'amount', operator: 'eq', text: '3' },
  ])
})

t.test('a log grows, is replaced and stays bounded', async (t) => {
  const start = { content: 'a\n', truncated: false }
  t.strictSame(withFrame(start, { text: 'b\n' }), { content: 'a\nb\n', truncated: false })
  t.strictSame(withFrame(start, { text: 'c\n', reset: true, truncated: true }), {
    content: 'c\n',
    truncated: true,
  })
  t.equal(
    withFrame(start, { text: '\u001b[31mred\u001b[0m\u001b]0;title\u0007\r\n' }).content,
    'a\nred\n',
  )
  const long = withFrame(start, { text: `${'x'.repeat(1_500_000)}\n${'y'.repeat(1_500_000)}` })
  t.match([long.content.length, long.truncated, long.content[0]], [1_500_000, true, 'y'])
})
