/**
 * Writes rows to a table. Invariants:
 * W1. Inserts are sent in the order of the file, one bulk after the other. Each bulk is stored as a
 *     whole or not at all, so a fault leaves a known number of rows.
 * W2. Updates of one identity are sent in the order of the file, one after the other.
 */
import { api } from '../../../protocol/api.ts'
import { tableLimits } from '../../../protocol/tables/schema.ts'
import { BatonError, type Transport } from '../../transport.ts'
import { Mistake } from '../mistake.ts'

/** Characters of JSON at which a bulk is full; far below the limit of a request. */
const BULK_SIZE = 1_048_576
/** Maximum number of concurrent updates. */
const AT_ONCE = 16

export interface Target {
  readonly transport: Transport
  readonly table_id: string
  /** Name of the identity column. */
  readonly identity: string
  /** Called after rows were written, with their number. */
  advanced(count: number): void
}
/** A row with the line of the file that contains it. */
export interface FileRow {
  readonly line: number
  readonly data: Readonly<Record<string, unknown>>
}

/**
 * Inserts rows.
 * @throws Mistake when the service refuses rows; the message names their lines.
 */
export async function insertRows(target: Target, rows: AsyncIterable<FileRow>): Promise<void> {
  let bulk: FileRow[] = []
  let size = 0
  const send = async (): Promise<void> => {
    if (bulk.length === 0) return
    const sent = bulk
    bulk = []
    size = 0
    await target.transport
      .call(api['row.bulk'], { id: target.table_id, rows: sent.map(({ data }) => data) })
      .catch((error: unknown) => {
        throw located(error, (index) => sent[index]?.line)
      })
    target.advanced(sent.length)
  }
  for await (const row of rows) {
    const length = JSON.stringify(row.data).length
    if (bulk.length >= tableLimits.batch || size + length > BULK_SIZE) await send()
    bulk.push(row)
    size += length
  }
  await send()
}

/**
 * Inserts rows, or updates those whose identity exists.
 * @throws Mistake when the service refuses a row; the message names its line.
 */
export async function upsertRows(target: Target, rows: AsyncIterable<FileRow>): Promise<void> {
  const active = new Map<unknown, Promise<void>>()
  let failure: unknown
  const send = async (
    { line, data }: FileRow,
    before: Promise<void> | undefined,
  ): Promise<void> => {
    await before
    if (failure !== undefined) return
    try {
      await target.transport.call(api['row.upsert'], { id: target.table_id, data })
      target.advanced(1)
    } catch (error) {
      failure ??= located(error, () => line)
    }
  }
  for await (const row of rows) {
    if (failure !== undefined) break
    const identity = row.data[target.identity]
    const sent: Promise<void> = send(row, active.get(identity)).then(() => {
      if (active.get(identity) === sent) active.delete(identity)
    })
    active.set(identity, sent)
    if (active.size >= AT_ONCE) await Promise.race(active.values())
  }
  await Promise.all(active.values())
  if (failure !== undefined) throw failure
}

/** A refusal with the lines of the rows that it is about; other errors are returned unchanged. */
function located(error: unknown, lineOf: (index: number) => number | undefined): unknown {
  if (!(error instanceof BatonError)) return error
  const { fields, rows } = error.details as {
    fields?: readonly { readonly field: string; readonly message: string }[]
    rows?: readonly number[]
  } & object
  const faults = [
    ...(fields ?? []).map(({ field, message }) => {
      const [, index, rest = field] = /^(?:rows\[(\d+)\]|data)\.?(.*)$/.exec(field) ?? []
      return { line: lineOf(Number(index ?? 0)), text: `${rest}: ${message}` }
    }),
    ...(rows ?? []).map((index) => ({ line: lineOf(index), text: error.message })),
  ]
  if (faults.length === 0 && error.status >= 500) return error
  if (faults.length === 0) return new Mistake(`Line ${lineOf(0)}: ${error.code}: ${error.message}`)
  return new Mistake(
    faults
      .map(({ line, text }) => (line === undefined ? text : `Line ${line}: ${text}`))
      .join('\n'),
  )
}
