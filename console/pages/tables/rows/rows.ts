/**
 * The loaded rows of a table. They are reloaded when the table changes, so that other people's
 * changes appear.
 *
 * Invariants:
 * R1. Rows of an older query never replace rows of a newer query.
 * R2. Rows stay visible while they are reloaded.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { onChange } from '../../../api/changes.ts'
import { ApiError, type CallReply, call } from '../../../api/client.ts'
import type { Sort } from './filter.ts'

export type TableRow = CallReply<'row.get'>
/** Selects the rows to show. A search has no sort, because its rows are sorted by relevance. */
export interface RowQuery {
  readonly filter?: Readonly<Record<string, unknown>>
  readonly sort?: readonly Sort[]
  readonly search?: { readonly query: string; readonly mode: 'keyword' | 'semantic' | 'hybrid' }
}
/** The rows that are loaded. */
export interface Rows {
  readonly rows: readonly TableRow[]
  readonly next: string | undefined
  readonly loading: boolean
  readonly error?: ApiError
  /** Whether the first page has arrived. */
  readonly known: boolean
}

const PAGE_SIZE = 200
/** Maximum number of rows that are reloaded after a change. Later rows stay as they are. */
const MAX_REFRESHED = 1000
/** Minimum time between the end of a load and the reload after a change. */
const PAUSE_MS = 1000

/**
 * Loads one page of rows.
 * @throws ApiError if the request fails.
 */
export async function loadRows(
  project: string,
  id: string,
  { filter, sort, search }: RowQuery,
  { cursor, limit = PAGE_SIZE, signal: abort }: RowsPage = {},
): Promise<CallReply<'table.query'>> {
  const common = {
    project,
    id,
    limit,
    ...(filter && Object.keys(filter).length > 0 && { filter }),
    ...(cursor !== undefined && { cursor }),
  }
  const options = abort ? { signal: abort } : {}
  return search
    ? await call('table.search', { ...common, ...search }, options)
    : await call('table.query', { ...common, ...(sort?.length && { sort: [...sort] }) }, options)
}
interface RowsPage {
  readonly cursor?: string | undefined
  readonly limit?: number
  readonly signal?: AbortSignal
}

/**
 * Joins reloaded rows with the known rows that follow them. If the last reloaded row is not known,
 * returns only the reloaded rows.
 */
export function joinRows(known: readonly TableRow[], again: readonly TableRow[]): TableRow[] {
  const last = again.at(-1)?.id
  const at = known.findIndex(({ id }) => id === last)
  const seen = new Set(again.map(({ id }) => id))
  return at < 0 ? [...again] : [...again, ...known.slice(at + 1).filter(({ id }) => !seen.has(id))]
}

/** Loads and stores the rows of one query. */
export class RowStore {
  readonly #state = signal<Rows>({ rows: [], next: undefined, loading: true, known: false })
  readonly #project: string
  readonly #id: string
  readonly #query: RowQuery
  #request: AbortController | undefined
  #later: ReturnType<typeof setTimeout> | undefined
  #loadedAt = 0
  constructor(project: string, id: string, query: RowQuery) {
    this.#project = project
    this.#id = id
    this.#query = query
  }
  get state(): ReadonlySignal<Rows> {
    return this.#state
  }
  /** Reloads the known rows, up to about `MAX_REFRESHED`. If no row is known, loads a page. */
  reload = (): Promise<void> =>
    this.#run(async (signal) => {
      const { rows: known, next: before } = this.#state.peek()
      const wanted = Math.min(MAX_REFRESHED, known.length)
      const rows: TableRow[] = []
      let next: string | undefined
      do {
        const page = await this.#load(next, signal)
        rows.push(...page.items)
        next = page.next_cursor
      } while (next !== undefined && rows.length < wanted)
      const all = next === undefined ? rows : joinRows(known, rows)
      return { rows: all, next: all.length > rows.length ? before : next }
    })
  /** Loads the next page, unless rows are being loaded or there are no more. */
  more = (): Promise<void> => {
    const { next, loading } = this.#state.peek()
    if (next === undefined || loading) return Promise.resolve()
    return this.#run(async (signal) => {
      const page = await this.#load(next, signal)
      const known = this.#state.peek().rows
      const seen = new Set(known.map(({ id }) => id))
      const rows = [...known, ...page.items.filter(({ id }) => !seen.has(id))]
      return { rows, next: page.next_cursor }
    })
  }
  /** Schedules a reload, because the table has changed. */
  changed = (): void => {
    this.#later ??= setTimeout(
      () => {
        this.#later = undefined
        void this.reload()
      },
      Math.max(0, this.#loadedAt + PAUSE_MS - Date.now()),
    )
  }
  /** Replaces a row with the newer state that the service returned. */
  put(row: TableRow): void {
    const { rows } = this.#state.peek()
    this.#state.value = {
      ...this.#state.peek(),
      rows: rows.map((one) => (one.id === row.id && one.version <= row.version ? row : one)),
    }
  }
  /** Removes rows that the service has deleted. */
  remove(ids: ReadonlySet<string>): void {
    const { rows } = this.#state.peek()
    this.#state.value = { ...this.#state.peek(), rows: rows.filter(({ id }) => !ids.has(id)) }
  }
  close(): void {
    clearTimeout(this.#later)
    this.#request?.abort()
  }
  #load(cursor: string | undefined, abort: AbortSignal) {
    return loadRows(this.#project, this.#id, this.#query, { cursor, signal: abort })
  }
  async #run(load: (signal: AbortSignal) => Promise<Pick<Rows, 'rows' | 'next'>>): Promise<void> {
    this.#request?.abort()
    const request = new AbortController()
    this.#request = request
    const { error: _, ...before } = this.#state.peek()
    this.#state.value = { ...before, loading: true }
    try {
      const loaded = await load(request.signal)
      if (this.#request === request) this.#state.value = { ...loaded, loading: false, known: true }
    } catch (error) {
      if (this.#request !== request || request.signal.aborted) return
      if (!(error instanceof ApiError)) throw error
      this.#state.value = { ...this.#state.peek(), loading: false, error }
    } finally {
      this.#loadedAt = Date.now()
    }
  }
}

/** Loads and follows the rows of a query while a component is shown. */
export function useRows(project: string, id: string, query: RowQuery): RowStore {
  const store = useMemo(
    () => new RowStore(project, id, query),
    [project, id, JSON.stringify(query)],
  )
  useEffect(() => {
    void store.reload()
    const stop = onChange({ project }, (kind, changed) => {
      if (kind === '*' || (kind === 'table' && (changed === undefined || changed === id)))
        store.changed()
    })
    return () => {
      stop()
      store.close()
    }
  }, [store])
  return store
}
