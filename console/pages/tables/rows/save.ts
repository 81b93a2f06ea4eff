/** Stores changes to a row, unless the row has changed since it was read. */
import { ApiError, call } from '../../../api/client.ts'
import type { TableRow } from './rows.ts'

/** Changes to a row that somebody else has changed or deleted in the meantime. */
export interface Conflict {
  /** The row as it is now; undefined when it was deleted. */
  readonly stored: TableRow | undefined
  readonly changes: Readonly<Record<string, unknown>>
}

/**
 * Changes members of a row. The value null removes a member.
 * @param row the row as the person last saw it.
 * @throws ApiError if a request fails for any reason other than a conflict with the stored row.
 */
export async function saveRow(
  project: string,
  { id: row_id, table_id, version }: TableRow,
  changes: Readonly<Record<string, unknown>>,
): Promise<{ readonly saved: TableRow } | { readonly conflict: Conflict }> {
  const at = { project, id: table_id, row_id }
  try {
    return { saved: await call('row.update', { ...at, data: changes, version }) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (error.status === 404) return { conflict: { stored: undefined, changes } }
    if (error.code !== 'conflict') throw error
    const stored = await call('row.get', at).catch((fault: unknown) => {
      if (fault instanceof ApiError && fault.status === 404) return undefined
      throw fault
    })
    // The row is unchanged, so the conflict has another reason, which the error states.
    if (stored?.version === version) throw error
    return { conflict: { stored, changes } }
  }
}

/** Returns the first fault of a member of a row; undefined if the member has none. */
export const memberFault = (error: ApiError, name: string): string | undefined =>
  error.fields.find(({ field }) => field === `data.${name}`)?.message
