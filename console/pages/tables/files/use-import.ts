/** Performs a planned import, and reports its progress. */
import { useRef, useState } from 'preact/hooks'
import type { Column, Table } from '../../../../protocol/tables/schema.ts'
import { ApiError, call } from '../../../api/client.ts'
import type { PlannedRow } from './plan.ts'
import { insertRows, upsertRows } from './send-rows.ts'

/** The progress of an import, in rows. */
export interface Progress {
  readonly done: number
  readonly total: number
  readonly running: boolean
  readonly error?: ApiError
}
interface Import {
  readonly rows: readonly PlannedRow[]
  /** Columns that are added to the table before the rows are sent. */
  readonly added: readonly Column[]
  /** Whether rows that exist are updated. Otherwise they are refused. */
  readonly update: boolean
}
interface Importing {
  /** Undefined until the import has begun. */
  readonly progress: Progress | undefined
  readonly run: (planned: Import) => Promise<void>
  /** Ends the import. The rows that were already stored are kept. */
  readonly stop: () => void
}

/** Returns the import of rows into a table. */
export function useImport(project: string, { id, schema }: Table): Importing {
  const [progress, setProgress] = useState<Progress>()
  const control = useRef<AbortController | undefined>(undefined)
  const run = async ({ rows, added, update }: Import): Promise<void> => {
    const { signal } = (control.current = new AbortController())
    const total = rows.length
    let done = 0
    const advance = (count: number): void => {
      done += count
      setProgress({ done, total, running: true })
    }
    advance(0)
    try {
      if (added.length > 0) {
        const columns = [...schema.columns, ...added]
        await call('table.update', { project, id, schema: { ...schema, columns } })
      }
      const sending = { project, id, signal, advance }
      if (update) await upsertRows(rows, schema.identity_column, sending)
      else await insertRows(rows, sending)
      setProgress({ done, total, running: false })
    } catch (error) {
      if (signal.aborted) return setProgress({ done, total, running: false })
      if (!(error instanceof ApiError)) throw error
      setProgress({ done, total, running: false, error })
    }
  }
  const stop = (): void => control.current?.abort(new DOMException('', 'AbortError'))
  return { progress, run, stop }
}
