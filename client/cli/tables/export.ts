/**
 * `baton table export`: writes the rows of a table as CSV or JSON Lines, page by page, so that
 * memory use is bounded. A row that changes during the export is written as it was at some moment
 * of the export.
 */
import { randomUUID } from 'node:crypto'
import { chmodSync, createWriteStream, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { api } from '../../../protocol/api.ts'
import type { TableRow } from '../../../protocol/tables/schema.ts'
import { connected, longClientFor } from '../connection/connection.ts'
import { parseJson } from '../fields.ts'
import { deleteOnSignal } from '../files/part-file.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { headerOf, recordOf } from './lines.ts'
import { type FileFormat, fileFormats, formatOf } from './records.ts'
import { findTable } from './table.ts'

/** Number of rows per page. */
const PAGE = 200

interface Flags {
  readonly format?: FileFormat
  readonly filter?: string
  readonly spreadsheet?: true
}
interface Page {
  readonly items: readonly TableRow[]
  readonly next_cursor?: string
}

/** Adds `baton table export` to the command `table`. */
export function addExport(parent: Command, shell: Shell): void {
  const command = connected(
    parent
      .command('export')
      .description('Write the rows of a table as CSV or JSON Lines')
      .argument('<table>', 'name or id of the table')
      .argument('[file]', 'file to write; by default, and with -, standard output'),
  )
    .addOption(
      new Option(
        '--format <format>',
        'format; by default from the name of the file, otherwise csv',
      ).choices(fileFormats),
    )
    .option('--filter <json>', 'export only the rows that match this filter')
    .option('--spreadsheet', 'put an apostrophe before texts of CSV that would be formulas')
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton table export orders orders.csv\n' +
        '  $ baton table export orders --format jsonl --filter \'{"status": "open"}\'\n',
    )
  command.action(
    shell.guarded(async (name: string, target: string | undefined) => {
      const file = target === '-' ? undefined : target
      const flags = command.opts<Flags>()
      const { transport } = longClientFor(command, shell)
      const filter = flags.filter === undefined ? undefined : parseJson('the filter', flags.filter)
      if (filter && 'fault' in filter) throw new Mistake(`${filter.fault}.`)
      const table = await findTable(transport, name)
      if (!table) throw new Mistake(`There is no table named ${JSON.stringify(name)}.`)
      const format = flags.format ?? (file === undefined ? undefined : formatOf(file)) ?? 'csv'
      const { columns } = table.schema
      const out = openOutput(file, shell)
      let count = 0
      try {
        const header = headerOf(format, columns)
        if (header !== undefined) await out.line(header)
        for (let cursor: string | undefined; ; ) {
          const page = (await transport.call(api['table.query'], {
            id: table.id,
            limit: PAGE,
            ...(filter && { filter: filter.value }),
            ...(cursor !== undefined && { cursor }),
          })) as Page
          for (const { data } of page.items)
            await out.line(recordOf(data, format, columns, flags.spreadsheet))
          count += page.items.length
          cursor = page.next_cursor
          if (cursor === undefined) break
        }
        await out.end()
      } catch (error) {
        await out.discard()
        throw error
      }
      if (file !== undefined)
        shell.note(`Wrote ${count} ${count === 1 ? 'row' : 'rows'} to ${file}.`)
    }),
  )
}

interface Output {
  line(text: string): Promise<void> | void
  /** Completes the output. */
  end(): Promise<void> | void
  /** Discards the output of a failed export, as far as possible. */
  discard(): Promise<void> | void
}
/**
 * Opens the destination. `line` resolves when the destination accepts more data. A file appears when
 * it is complete, unless it is a device or a pipe, which is written directly.
 */
function openOutput(file: string | undefined, shell: Shell): Output {
  if (file === undefined)
    return { line: (text) => shell.print(text), end: () => {}, discard: () => {} }
  const failed = (error: Error) => new Mistake(`${file} cannot be written: ${error.message}`)
  const before = statSync(file, { throwIfNoEntry: false })
  if (before?.isDirectory()) throw new Mistake(`${file} is a folder. Name the file to write.`)
  const isWhole = before === undefined || before.isFile()
  // A link stays a link, and its target is replaced.
  const target = before?.isFile() ? realpathSync(file) : file
  const part = isWhole ? `${target}.${randomUUID().slice(0, 8)}.part` : target
  const stream = createWriteStream(part, { ...(before && isWhole && { mode: before.mode }) })
  const keep = isWhole ? deleteOnSignal(part) : () => {}
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure ??= error
  })
  const check = (): void => {
    if (failure) throw failed(failure)
  }
  /** Resolves after one of the events. A failure of the stream ends with `close`. */
  const reached = (...events: readonly ('drain' | 'close')[]): Promise<void> =>
    new Promise((done) => {
      const end = () => {
        for (const event of events) stream.off(event, end)
        done()
      }
      for (const event of events) stream.on(event, end)
    })
  const close = async (): Promise<void> => {
    stream.end()
    if (!stream.closed) await reached('close')
  }
  return {
    line: async (text) => {
      check()
      if (!stream.write(`${text}\n`)) await reached('drain', 'close')
      check()
    },
    end: async () => {
      await close()
      check()
      if (!isWhole) return
      try {
        if (before) chmodSync(part, before.mode)
        renameSync(part, target)
        keep()
      } catch (error) {
        throw failed(error as Error)
      }
    },
    discard: async () => {
      await close()
      if (isWhole) rmSync(part, { force: true })
      keep()
    },
  }
}
