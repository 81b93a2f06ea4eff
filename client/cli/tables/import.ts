/**
 * `baton table import`: inserts the rows of a file in bulk and in file order, or upserts each row
 * with a separate request. The file is streamed. The columns are shown before anything is written.
 */
import { createReadStream, type Stats, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { api } from '../../../protocol/api.ts'
import type { ColumnType, Table } from '../../../protocol/tables/schema.ts'
import { typeNames } from '../../../protocol/tables/values.ts'
import { closest } from '../../suggest.ts'
import type { Transport } from '../../transport.ts'
import { connected, longClientFor } from '../connection/connection.ts'
import { standardInput } from '../files/standard-input.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { clearedByEmpty, dataOf, type FileColumn, inferColumns, nameFault } from './columns.ts'
import { type FileFormat, type FileRecord, fileFormats, formatOf, readRecords } from './records.ts'
import { findTable } from './table.ts'
import { insertRows, upsertRows } from './write.ts'

/** Number of records from which column types are inferred. */
const SAMPLE = 1000

interface Flags {
  readonly format?: FileFormat
  readonly create?: true
  readonly identity?: string
  readonly type?: Readonly<Record<string, ColumnType>>
  readonly upsert?: true
  readonly dryRun?: true
  readonly spreadsheet?: true
}

/** Adds `baton table import` to the command `table`. */
export function addImport(parent: Command, shell: Shell): void {
  const command = connected(
    parent
      .command('import')
      .description('Add the rows of a CSV or JSON Lines file to a table')
      .argument('<table>', 'name or id of the table')
      .argument('<file>', 'file to read; - reads standard input'),
  )
    .addOption(
      new Option('--format <format>', 'format; by default from the name of the file').choices(
        fileFormats,
      ),
    )
    .option('--create', 'create the table if it does not exist, with columns from the file')
    .option('--identity <column>', 'identity column of a new table; by default the first column')
    .option('--type <column=type...>', 'type of a column of a new table', columnType)
    .option('--upsert', 'update the rows whose identity exists, instead of refusing them')
    .option('--spreadsheet', 'remove the apostrophes that an export with --spreadsheet added')
    .option('--dry-run', 'show the columns and their types, and write nothing')
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton table import orders orders.csv --create --identity number\n' +
        '  $ baton table import orders changes.jsonl --upsert\n',
    )
  command.action(
    shell.guarded(async (name: string, file: string) => {
      const { transport } = longClientFor(command, shell)
      await importFile(transport, name, file, command.opts<Flags>(), shell)
    }),
  )
}
function columnType(
  text: string,
  before: Readonly<Record<string, ColumnType>> = {},
): Record<string, ColumnType> {
  const [, column, type] = /^(.+)=(\w+)$/.exec(text) ?? []
  if (column === undefined || type === undefined || !Object.hasOwn(typeNames, type))
    throw new InvalidArgumentError(
      `It must be <column>=<type>; types are ${Object.keys(typeNames).join(', ')}.`,
    )
  return { ...before, [column]: type as ColumnType }
}

async function importFile(
  transport: Transport,
  name: string,
  file: string,
  flags: Flags,
  shell: Shell,
): Promise<void> {
  const format = flags.format ?? formatOf(file)
  if (!format)
    throw new Mistake(
      `The name ${file} implies no format: pass --format ${fileFormats.join(' or --format ')}.`,
    )
  const found = await findTable(transport, name)
  if (!found && !flags.create)
    throw new Mistake(
      `There is no table named ${JSON.stringify(name)}: pass --create to create it.`,
    )
  const source = openFile(file)
  try {
    await importFrom(source, { transport, name, file, format, found }, flags, shell)
  } finally {
    // Standard input would otherwise keep the process alive while its writer waits.
    source.stream.destroy()
  }
}

interface Import {
  readonly transport: Transport
  readonly name: string
  readonly file: string
  readonly format: FileFormat
  /** The table, if it exists. */
  readonly found: Table | undefined
}
async function importFrom(
  source: Source,
  { transport, name, file, format, found }: Import,
  flags: Flags,
  shell: Shell,
): Promise<void> {
  const records = readRecords(source.stream, format, flags.spreadsheet)[Symbol.asyncIterator]()
  const sample = await take(records, SAMPLE)
  if (sample.length === 0) throw new Mistake(`${file} has no rows.`)
  const columns = found
    ? knownColumns(found, sample, format, flags)
    : newColumns(sample, format, flags)
  for (const line of columnLines(columns.columns, columns.identity)) shell.note(line)
  if (flags.dryRun) return shell.note('Nothing was written, because of --dry-run.')
  const table = found ?? (await create(transport, name, columns))
  if (!found) shell.note(`Created the table ${name}, ${table.id}.`)

  const types = new Map(columns.columns.map((column) => [column.name, column.type]))
  const bar = shell.progress?.('rows')
  let done = 0
  const cleared = clearedByEmpty(flags.upsert ? [] : table.schema.columns)
  const rows = async function* () {
    for await (const record of continued(sample, records))
      yield { line: record.line, data: dataOf(record, types, format, cleared) }
  }
  const advanced = (count: number): void => {
    done += count
    bar?.update(source.part(), done)
  }
  try {
    const target = { transport, table_id: table.id, identity: columns.identity, advanced }
    if (flags.upsert) await upsertRows(target, rows())
    else await insertRows(target, rows())
  } catch (error) {
    bar?.stop()
    if (done > 0) shell.note(`${done} rows were written before the fault.`)
    else if (!found && error instanceof Mistake) await remove(transport, table, shell)
    throw error
  } finally {
    bar?.stop()
  }
  shell.note(`Wrote ${done} ${done === 1 ? 'row' : 'rows'} to the table ${table.name}.`)
}

interface Columns {
  readonly columns: readonly FileColumn[]
  readonly identity: string
}
/**
 * Returns the columns of the file for an existing table. An open table accepts columns that it does
 * not have yet.
 * @throws Mistake if a closed table does not have one of the columns, or a flag contradicts the
 * table.
 */
function knownColumns(
  { schema, name }: Table,
  sample: readonly FileRecord[],
  format: FileFormat,
  { identity, type = {} }: Flags,
): Columns {
  if (identity !== undefined && identity !== schema.identity_column)
    throw new Mistake(`The identity column of the table ${name} is ${schema.identity_column}.`)
  const differing = schema.columns.find(
    (column) => (type[column.name] ?? column.type) !== column.type,
  )
  if (differing)
    throw new Mistake(`The column ${differing.name} of the table ${name} is ${differing.type}.`)
  const columns: FileColumn[] = schema.columns.map((column) => ({
    name: column.name,
    type: column.type,
  }))
  const names = columns.map((column) => column.name)
  const given = inferColumns(sample, format, schema.identity_column)
  const others = given.filter((column) => !names.includes(column.name))
  const [other] = others
  if (other && !schema.open) {
    const near = closest(other.name, names)
    throw new Mistake(
      `The table ${name} has no column ${JSON.stringify(other.name)}.` +
        (near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`),
    )
  }
  const used = new Set(given.map((column) => column.name))
  return {
    columns: [...columns.filter((column) => used.has(column.name)), ...others],
    identity: schema.identity_column,
  }
}
function newColumns(sample: readonly FileRecord[], format: FileFormat, flags: Flags): Columns {
  const first = Object.keys(sample[0]?.values ?? {})[0] ?? ''
  const identity = flags.identity ?? first
  const inferred = inferColumns(sample, format, identity)
  const names = inferred.map(({ name }) => name)
  const unknown = [identity, ...Object.keys(flags.type ?? {})].find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw new Mistake(`The file has no column ${JSON.stringify(unknown)}: ${names.join(', ')}.`)
  const fault = nameFault(names)
  if (fault !== undefined) throw new Mistake(fault)
  return {
    identity,
    columns: inferred.map(({ name, type }) => ({ name, type: flags.type?.[name] ?? type })),
  }
}
function columnLines(columns: readonly FileColumn[], identity: string): string[] {
  const width = Math.max(...columns.map(({ name }) => name.length))
  return columns.map(
    ({ name, type }) => `  ${name.padEnd(width)}  ${type}${name === identity ? '  identity' : ''}`,
  )
}

const create = async (
  transport: Transport,
  name: string,
  { columns, identity }: Columns,
): Promise<Table> =>
  (await transport.call(api['table.create'], {
    name,
    schema: {
      identity_column: identity,
      columns: columns.map((column) => ({
        ...column,
        ...(column.name === identity && { required: true }),
      })),
    },
  })) as Table

/**
 * Deletes the new table whose rows were refused. Otherwise, the next attempt would find it, with the
 * columns of this one.
 */
async function remove(transport: Transport, { id, name }: Table, shell: Shell): Promise<void> {
  try {
    await transport.call(api['table.delete'], { id })
    shell.note(`Deleted the table ${name} again, because no row was written.`)
  } catch (error) {
    shell.note(`The table ${name} remains without rows: ${(error as Error).message}`)
  }
}

interface Source {
  readonly stream: Readable
  /** Returns the fraction that has been read, from 0 to 1; 0 if the size is unknown. */
  part(): number
}
function openFile(file: string): Source {
  if (file === '-') return { stream: standardInput(), part: () => 0 }
  let stat: Stats
  try {
    stat = statSync(file)
  } catch (error) {
    throw new Mistake(`${file} cannot be read: ${(error as Error).message}`)
  }
  if (stat.isDirectory()) throw new Mistake(`${file} is a folder. Name the file to read.`)
  const { size } = stat
  const stream = createReadStream(file)
  return { stream, part: () => (size === 0 ? 0 : stream.bytesRead / size) }
}

async function take<T>(from: AsyncIterator<T>, count: number): Promise<T[]> {
  const taken: T[] = []
  while (taken.length < count) {
    const next = await from.next()
    if (next.done) break
    taken.push(next.value)
  }
  return taken
}
async function* continued<T>(first: readonly T[], rest: AsyncIterator<T>): AsyncGenerator<T> {
  yield* first
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}
