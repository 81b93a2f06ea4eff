/** Sends the rows of an import to the service, in requests of limited size. */
import { ApiError, call } from '../../../api/client.ts'
import { tablesText as text } from '../text.ts'
import { bulksOf, type PlannedRow, updatesOf } from './plan.ts'

interface Sending {
  readonly project: string
  /** The id of the table. */
  readonly id: string
  /** Ends the import before the next request. */
  readonly signal: AbortSignal
  /** Called with the number of rows that were stored. */
  readonly advance: (count: number) => void
}

/**
 * Inserts rows. A row whose identity exists is refused.
 * @throws ApiError that names lines of the file.
 */
export async function insertRows(
  rows: readonly PlannedRow[],
  { project, id, signal, advance }: Sending,
): Promise<void> {
  for (const bulk of bulksOf(rows)) {
    signal.throwIfAborted()
    try {
      await call('row.bulk', { project, id, rows: bulk.map(({ data }) => data) }, { signal })
    } catch (error) {
      throw located(error, bulk)
    }
    advance(bulk.length)
  }
}

/**
 * Inserts rows, and updates those whose identity exists.
 * @param identity the name of the identity column.
 * @throws ApiError that names lines of the file.
 */
export async function upsertRows(
  rows: readonly PlannedRow[],
  identity: string,
  { project, id, signal, advance }: Sending,
): Promise<void> {
  for (const group of updatesOf(rows, identity)) {
    signal.throwIfAborted()
    await Promise.all(
      group.map(async (row) => {
        try {
          await call('row.upsert', { project, id, data: row.data }, { signal })
        } catch (error) {
          throw located(error, [row])
        }
        advance(1)
      }),
    )
  }
}

/** Returns the error with lines of the file in place of row indices of the request. */
function located(error: unknown, rows: readonly PlannedRow[]): unknown {
  if (!(error instanceof ApiError)) return error
  const lineOf = (index: unknown): string => text.line(rows[Number(index)]?.line ?? '?')
  const fields = error.fields.map(({ field, message }) => {
    const [, index = '0', rest = ''] = /^(?:rows\[(\d+)\]|data)\.?(.*)$/.exec(field) ?? []
    return { field: `${lineOf(index)} ${rest}`.trim(), message }
  })
  const numbers = error.details['rows']
  const named = Array.isArray(numbers)
    ? numbers.map((index) => ({
        field: lineOf(index),
        message: error.message,
      }))
    : []
  return new ApiError(
    error.status,
    error.code,
    error.message,
    { ...error.details, fields: [...fields, ...named] },
    error.requestId,
  )
}
