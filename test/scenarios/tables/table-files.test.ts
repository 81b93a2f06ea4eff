/** Import and export of tables from the command line, with a running service. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import t from 'tap'
import { addClientCommands } from '../../../client/cli/commands.ts'
import { programArguments } from '../../../nodes/commands/child.ts'
import { service } from '../../support/service.ts'
import { listOf } from '../support/given.ts'
import { dataOf } from '../support/tables.ts'

const s = await service()
const folder = mkdtempSync(join(tmpdir(), 'baton-files-'))
t.teardown(() => s.stop())
t.teardown(() => rmSync(folder, { recursive: true }))
const file = (name: string, text?: string): string => {
  const path = join(folder, name)
  if (text !== undefined) writeFileSync(path, text)
  return path
}

/** Runs a command. Returns its output, and its error if there is one. */
async function baton(...words: readonly string[]) {
  const printed: string[] = []
  const notes: string[] = []
  let fault: Error | undefined
  const env = { BATON_URL: s.url, BATON_KEY: s.key, BATON_HOME: folder }
  const command = new Command('baton')
  addClientCommands(command, env, {
    env,
    print: (line) => printed.push(line),
    note: (line) => notes.push(line),
    guarded:
      (action) =>
      async (...given) => {
        await action(...given).catch((error: Error) => {
          fault = error
        })
      },
  })
  await command.parseAsync(words, { from: 'user' })
  return { printed, notes, fault }
}
const rowsOf = async (name: string): Promise<object[]> => {
  const [table] = listOf(await s.ok('table.list', { name }))
  return listOf(await s.ok('table.query', { id: table?.['id'], limit: 200 })).map(dataOf)
}
const CSV = `number,customer,amount,paid,due,tags
A-1,ann,1.5,true,2026-12-01,"[""x""]"
A-2,"bob, jr.",-2,,2026-11-15,
A-3,"",0,false,,[]
`

t.test('a CSV file becomes a table, and the table the same file', async (t) => {
  const orders = file('orders.csv', CSV)
  const missing = await baton('table', 'import', 'orders', orders)
  t.match(missing.fault?.message, /no table named "orders": pass --create/)
  const dry = await baton('table', 'import', 'orders', orders, '--create', '--dry-run')
  t.match(dry.notes, [
    /number +string +identity/,
    /customer +string/,
    /amount +number/,
    /paid +boolean/,
    /due +date/,
    /tags +array/,
    /Nothing was written/,
  ])
  t.strictSame(listOf(await s.ok('table.list', { name: 'orders' })), [])
  const { notes, fault } = await baton('table', 'import', 'orders', orders, '--create')
  t.equal(fault, undefined)
  t.match(notes.slice(-2), [/Created the table orders, tbl_/, 'Wrote 3 rows to the table orders.'])
  t.strictSame(await rowsOf('orders'), [
    { number: 'A-1', customer: 'ann', amount: 1.5, paid: true, due: '2026-12-01', tags: ['x'] },
    { number: 'A-2', customer: 'bob, jr.', amount: -2, due: '2026-11-15' },
    { number: 'A-3', customer: '', amount: 0, paid: false, tags: [] },
  ])
  const out = file('out.csv')
  t.strictSame((await baton('table', 'export', 'orders', out)).notes, [`Wrote 3 rows to ${out}.`])
  t.equal(readFileSync(out, 'utf8'), CSV)
  const { printed } = await baton(
    ...['table', 'export', 'orders', '--format', 'jsonl', '--filter', '{"paid": true}'],
  )
  t.strictSame(
    printed.map((line) => (JSON.parse(line) as { number: string }).number),
    ['A-1'],
  )
})

t.test('a new table whose rows are refused does not remain', async (t) => {
  const twice = file('twice.csv', 'key,n\na,1\na,2\n')
  const refused = await baton('table', 'import', 'twice', twice, '--create')
  t.match(refused.fault?.message, /^Line 3: /)
  t.match(refused.notes.at(-1), 'Deleted the table twice again, because no row was written.')
  const wrong = file('wrong.csv', 'key,n\na,x\n')
  for (const flags of [[], ['--upsert']]) {
    const words = ['table', 'import', 'twice', wrong, '--create', '--type', 'n=number', ...flags]
    t.match((await baton(...words)).fault?.message, /^Line 2: .*number/)
  }
  t.strictSame(listOf(await s.ok('table.list', { name: 'twice' })), [])
})

t.test('a name that no column can have is refused before the table is created', async (t) => {
  const names = file('names.csv', 'key,First name\na,x\n')
  for (const flags of [[], ['--dry-run']]) {
    const { fault } = await baton('table', 'import', 'names', names, '--create', ...flags)
    t.match(fault, { name: 'Mistake', message: /named "First name": .*Rename the column/ })
  }
  t.strictSame(listOf(await s.ok('table.list', { name: 'names' })), [])
})

t.test('flags that contradict an existing table are refused', async (t) => {
  const orders = file('orders.csv', CSV)
  const fault = async (...flags: string[]) =>
    (await baton('table', 'import', 'orders', orders, '--create', ...flags, '--upsert')).fault
  t.match(await fault('--identity', 'customer'), { message: /identity column .* is number\.$/ })
  t.match(await fault('--type', 'amount=string'), { message: /column amount .* is number\.$/ })
  t.equal(await fault('--identity', 'number', '--type', 'amount=number'), undefined)
})

t.test('a fault names its line, and upserts repeat an import', async (t) => {
  const duplicate = file('more.csv', 'number,amount\nA-4,1\nA-1,2\n')
  const refused = await baton('table', 'import', 'orders', duplicate)
  t.match(refused.fault?.message, /^Line 3: /)
  t.equal((await rowsOf('orders')).length, 3, 'nothing of the bulk is stored')
  const { notes } = await baton('table', 'import', 'orders', duplicate, '--upsert')
  t.equal(notes.at(-1), 'Wrote 2 rows to the table orders.')
  const rows = (await rowsOf('orders')) as { number: string; amount: number; customer?: string }[]
  t.match(
    rows.find(({ number }) => number === 'A-1'),
    { amount: 2, customer: 'ann' },
  )
  t.equal(rows.length, 4)
  const wrong = file('wrong.csv', 'number,amount\nA-5,many\n')
  t.match((await baton('table', 'import', 'orders', wrong)).fault?.message, /^Line 2: .*amount/)
  const column = file('column.csv', 'number,amont\nA-5,1\n')
  t.match(
    (await baton('table', 'import', 'orders', column)).fault?.message,
    /Did you mean "amount"/,
  )
  const invalid = file('invalid.jsonl', '{"number":"A-5"}\n{"number":"A-6","amount":"x"}\n')
  t.match(
    (await baton('table', 'import', 'orders', invalid)).fault?.message,
    /^Line 2: amount: must be a finite number/,
  )
})

t.test('a value that is missing stays missing, although its column has a default', async (t) => {
  const column = { type: 'string', default: 'new' }
  const schema = {
    identity_column: 'key',
    columns: [
      { name: 'key', type: 'string', required: true },
      { name: 'state', ...column },
      { name: 'kind', ...column, required: true },
    ],
  }
  const data = { key: 'a', state: null, kind: 'x' }
  const { id } = await s.ok('table.create', { name: 'standard', schema })
  await s.ok('row.insert', { id, data })
  for (const format of ['csv', 'jsonl']) {
    const path = file(`standard.${format}`)
    t.equal((await baton('table', 'export', 'standard', path)).fault, undefined)
    await s.ok('table.create', { name: format, schema })
    t.equal((await baton('table', 'import', format, path)).fault, undefined)
    t.strictSame(await rowsOf(format), [{ key: 'a', kind: 'x' }], format)
  }
  const sparse = file('sparse.csv', 'key,state,kind\na,,y\nb,,\n')
  t.equal((await baton('table', 'import', 'csv', sparse, '--upsert')).fault, undefined)
  const [newest, oldest] = (await rowsOf('csv')).toSorted((a) => ('state' in a ? -1 : 1))
  t.strictSame(oldest, { key: 'a', kind: 'y' }, 'an update leaves a missing value as it is')
  t.strictSame(newest, { key: 'b', state: 'new', kind: 'new' })
})

t.test('a folder is not a file of rows', async (t) => {
  const read = await baton('table', 'import', 'orders', folder, '--format', 'csv')
  t.equal(read.fault?.message, `${folder} is a folder. Name the file to read.`)
  const written = await baton('table', 'export', 'orders', folder)
  t.equal(written.fault?.message, `${folder} is a folder. Name the file to write.`)
})

t.test('an import from a pipe ends although the writer continues', async (t) => {
  const child = spawn(
    process.execPath,
    [...programArguments(), ...'table import piped - --format csv --create --dry-run'.split(' ')],
    { env: { ...process.env, BATON_URL: s.url, BATON_KEY: s.key, BATON_HOME: folder } },
  )
  t.teardown(() => child.kill())
  // More than a pipe holds, and its end is never sent.
  child.stdin.on('error', () => {}).write('key,n\n'.concat('a,1\n'.repeat(100_000)))
  const [code] = (await once(child, 'exit')) as [number]
  t.equal(code, 0)
})

t.test('a failed export leaves the file as it was', async (t) => {
  const kept = file('kept.csv', 'old\n')
  chmodSync(kept, 0o660)
  const link = file('link.csv')
  symlinkSync(kept, link)
  const files = readdirSync(folder)
  const failed = await baton('table', 'export', 'orders', kept, '--filter', '{"none": 1}')
  t.match(failed.fault, { code: 'bad_request' })
  t.equal(readFileSync(kept, 'utf8'), 'old\n')
  t.strictSame(readdirSync(folder), files, 'no incomplete file is left')
  t.equal((await baton('table', 'export', 'orders', link)).fault, undefined)
  t.match(readFileSync(kept, 'utf8'), /^number,/)
  t.equal(statSync(kept).mode & 0o777, 0o660)
  t.ok(lstatSync(link).isSymbolicLink())
  const pipe = file('pipe')
  execFileSync('mkfifo', [pipe])
  const [read, { fault }] = await Promise.all([
    readFile(pipe, 'utf8'),
    baton('table', 'export', 'orders', pipe),
  ])
  t.equal(fault, undefined)
  t.equal(read, readFileSync(kept, 'utf8'))
  t.ok(statSync(pipe).isFIFO(), 'a pipe or device is not replaced')
})

t.test('a long file is written in several bulks, in its order', async (t) => {
  const lines = Array.from({ length: 2500 }, (_, i) => JSON.stringify({ key: `k${i}`, n: i }))
  const { fault, notes } = await baton(
    ...['table', 'import', 'long', file('long.jsonl', lines.join('\n')), '--create'],
  )
  t.equal(fault, undefined)
  t.equal(notes.at(-1), 'Wrote 2500 rows to the table long.')
  t.strictSame((await baton('table', 'export', 'long', '--format', 'jsonl')).printed, lines)
  const last = '{"key":"same","n":100}'
  const same = Array.from({ length: 101 }, (_, n) => JSON.stringify({ key: 'same', n }))
  await baton('table', 'import', 'long', file('same.jsonl', same.join('\n')), '--upsert')
  const { printed } = await baton(
    ...['table', 'export', 'long', '--format', 'jsonl', '--filter', '{"key": "same"}'],
  )
  t.strictSame(printed, [last], 'the last line of an identity wins')
})

t.test('files for spreadsheet programs have no formulas and are read back', async (t) => {
  const note = "=cmd|' /C calc'!A0"
  const { id } = await s.ok('table.create', {
    name: 'formulas',
    schema: {
      identity_column: 'key',
      columns: [
        { name: 'key', type: 'string', required: true },
        { name: 'note', type: 'string' },
      ],
    },
  })
  await s.ok('row.insert', { id, data: { key: '-1', note } })
  t.strictSame((await baton('table', 'export', 'formulas')).printed, ['key,note', `-1,${note}`])
  const safe = file('safe.csv')
  await baton('table', 'export', 'formulas', safe, '--spreadsheet')
  t.equal(readFileSync(safe, 'utf8'), `key,note\n-1,'${note}\n`)
  await baton('table', 'import', 'formulas', safe, '--spreadsheet', '--upsert')
  t.strictSame(await rowsOf('formulas'), [{ key: '-1', note }])
})

t.test('an update on the condition of an entity tag', async (t) => {
  const [table] = listOf(await s.ok('table.list', { name: 'formulas' }))
  const id = String(table?.['id'])
  const [tag = ''] = (await baton('table', 'get', id, '--etag')).printed
  t.match(tag, /^"\d{17}-\w+"$/)
  const update = (if_match: string, description: string) =>
    baton('table', 'update', id, '--if-match', if_match, '--description', description)
  const { printed, fault } = await update(tag, 'First')
  t.equal(fault, undefined)
  t.match(JSON.parse(printed.join('')), { description: 'First' })
  t.match((await update(tag, 'Second')).fault, { status: 412, code: 'precondition_failed' })
  t.match((await update('no tag', 'Second')).fault, { status: 400 })
  const called = await baton('call', 'table.get', '--set', `id=${id}`, '--etag')
  t.equal((await update(called.printed[0] ?? '', 'Second')).fault, undefined)
})
