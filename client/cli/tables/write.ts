/**
 * Writes rows to a table. Invariants:
 * W1. Bulk inserts are sent in file order, one at a time. Each bulk insert is atomic, so a failure
 *     leaves a known number of rows.
 * W2. Updates of rows with the same identity are sent in file order, one at a time.
 */
import { api } from '../../../protocol/api.ts'
import { tableLimits } from '../../../protocol/tables/schema.ts'
import { BatonError } from '../../errors.ts'
import type { Transport } from '../../transport.ts'
import { Mistake } from '../mistake.ts'

/** Maximum size of a bulk insert in characters of JSON, far below the request limit. */
const MAX_BULK_LENGTH = 1_048_576
/** Maximum number of updates that run, or wait for an earlier one of the same identity. */
const MAX_CONCURRENT = 16

export interface Target {
  readonly transport: Transport
  readonly table_id: string
  /** Name of the identity column. */
  readonly identity: string
  /** Called after each write with the number of rows written. */
  advanced(count: number): void
}
/** A row, and the number of its line in the file. */
export interface FileRow {
  readonly line: number
  readonly data: Readonly<Record<string, unknown>>
}

/**
 * Inserts rows.
 * @throws Mistake if the service refuses rows. The message contains their line numbers.
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
    if (bulk.length >= tableLimits.batch || size + length > MAX_BULK_LENGTH) await send()
    bulk.push(row)
    size += length
  }
  await send()
}

/**
 * Inserts each row, or updates the existing row with the same identity.
 * @throws Mistake if the service refuses a row. The message contains its line number.
 */
export async function upsertRows(target: Target, rows: AsyncIterable<FileRow>): Promise<void> {
  const active = new Map<unknown, Promise<void>>()
  const running = new Set<Promise<void>>()
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
  try {
    for await (const row of rows) {
      if (failure !== undefined) break
      const identity = row.data[target.identity]
      const sent: Promise<void> = send(row, active.get(identity)).then(() => {
        running.delete(sent)
        if (active.get(identity) === sent) active.delete(identity)
      })
      active.set(identity, sent)
      running.add(sent)
      if (running.size >= MAX_CONCURRENT) await Promise.race(running)
    }
  } catch (error) {
    failure ??= error
  }
  await Promise.all(running)
  if (failure !== undefined) throw failure
}

/** HTTP statuses of refusals that concern the rows of a request. */
const OF_ROWS: ReadonlySet<number> = new Set([400, 409, 413])
/**
 * Converts a refusal to an error with the line numbers of the affected rows. Other errors are
 * returned unchanged.
 */
function located(error: unknown, lineOf: (index: number) => number | undefined): unknown {
  if (!(error instanceof BatonError)) return error
  const { fields, rows } = (error.details ?? {}) as {
    fields?: readonly { readonly field: string; readonly message: string }[]
    rows?: readonly number[]
  }
  const faults = [
    ...(fields ?? []).map(({ field, message }) => {
      const [, index, rest = field] = /^(?:rows\[(\d+)\]|data)\.?(.*)$/.exec(field) ?? []
      const text = rest === '' ? message : `${rest}: ${message}`
      return { line: lineOf(Number(index ?? 0)), text }
    }),
    ...(rows ?? []).map((index) => ({ line: lineOf(index), text: error.message })),
  ]
  if (faults.length === 0 && !OF_ROWS.has(error.status)) return error
  if (faults.length === 0) return new Mistake(`Line ${lineOf(0)}: ${error.code}: ${error.message}`)
  return new Mistake(
    faults
      .map(({ line, text }) => (line === undefined ? text : `Line ${line}: ${text}`))
      .join('\n'),
  )
}
