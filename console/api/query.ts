/**
 * Caches responses to queries as signals. Pages show a cached response immediately and follow
 * changes.
 *
 * Invariants:
 * Q1. Equal queries share one entry and one request in flight.
 * Q2. The response of an older request never replaces that of a newer one.
 * Q3. Entries without users are kept for back navigation. Beyond `MAX_UNUSED`, the least recently
 *     used are dropped.
 */
import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { forgetChanges, onChange } from './changes.ts'
import {
  ApiError,
  type CallInput,
  type CallName,
  type CallReply,
  call,
  setUnknownOutcomeHandler,
} from './client.ts'
import { Growing } from './growing.ts'
import type { Packing } from './packed.ts'
import { addPage, type Known, mergeFirst, nothingKnown, type PageOf } from './pages.ts'

/** The state of a query. `data` is the last response, even while a newer one is being loaded. */
export interface Loaded<T> {
  readonly data?: T
  readonly error?: ApiError
  readonly loading: boolean
}
/** A query that a component uses. */
export interface Query<T> {
  readonly state: ReadonlySignal<Loaded<T>>
  /** Loads the response again. */
  reload(): void
}
/** Options of `useQuery`. */
export interface QueryOptions {
  /**
   * Kinds of records. If a record of one of these kinds changes in the project of the query, the
   * response is loaded again.
   */
  readonly kinds?: readonly string[]
  /** Id of a record. Only changes to this record, and changes without an id, cause a new load. */
  readonly id?: string | undefined
}

interface Entry {
  readonly state: Signal<Loaded<unknown>>
  readonly name: CallName
  readonly input: Record<string, unknown>
  users: number
  request: AbortController | undefined
  /** Timer of the load that a change scheduled. */
  later: ReturnType<typeof setTimeout> | undefined
  loadedAt: number
}

/** Maximum number of cached queries that no page uses. */
const MAX_UNUSED = 60
/** Minimum number of milliseconds between a response and the next load after a change. */
const PAUSE_MS = 1000
const entries = new Map<string, Entry>()

/** Removes all responses and ends the subscriptions to changes, on sign-out. */
export function forgetResponses(): void {
  forgetChanges()
  for (const { request } of entries.values()) request?.abort()
  entries.clear()
}

function entryOf(name: CallName, input: Record<string, unknown>): Entry {
  const id = `${name} ${JSON.stringify(input)}`
  const known = entries.get(id)
  if (known) {
    // Moves the entry to the end, because the most recently used entries are last.
    entries.delete(id)
    entries.set(id, known)
    return known
  }
  const entry: Entry = {
    state: signal<Loaded<unknown>>({ loading: true }),
    name,
    input,
    users: 0,
    request: undefined,
    later: undefined,
    loadedAt: 0,
  }
  entries.set(id, entry)
  let unused = [...entries.values()].filter(({ users }) => users === 0).length - MAX_UNUSED
  for (const [other, { users }] of entries) {
    if (unused <= 0) break
    if (users > 0 || other === id) continue
    entries.delete(other)
    unused--
  }
  return entry
}

async function load(entry: Entry): Promise<void> {
  entry.request?.abort()
  const request = new AbortController()
  entry.request = request
  const { error: _, ...before } = entry.state.peek()
  entry.state.value = { ...before, loading: true }
  try {
    const data = await call(entry.name, entry.input as never, { signal: request.signal })
    if (entry.request === request) entry.state.value = { data, loading: false }
  } catch (error) {
    if (entry.request !== request || request.signal.aborted) return
    if (!(error instanceof ApiError)) throw error
    const { data } = entry.state.peek()
    entry.state.value = { ...(data !== undefined && { data }), error, loading: false }
  } finally {
    if (entry.request === request) {
      entry.request = undefined
      entry.loadedAt = Date.now()
    }
  }
}

/** Schedules a load after a change, at least `PAUSE_MS` after the last response. */
function scheduleLoad(entry: Entry): void {
  const wait = Math.max(0, entry.loadedAt + PAUSE_MS - Date.now())
  entry.later ??= setTimeout(() => {
    entry.later = undefined
    // A request in flight is replaced, because its response may predate the change.
    if (entry.users > 0) void load(entry)
  }, wait)
}

// If the outcome of a change is unknown, any response may be out of date, so all responses in use
// are loaded again.
setUnknownOutcomeHandler(() => {
  for (const entry of entries.values()) if (entry.users > 0) scheduleLoad(entry)
})

const idle: ReadonlySignal<Loaded<never>> = signal({ loading: false })

/**
 * Uses a query in a component. The query runs when the component is first shown and when its input
 * changes.
 * @param input undefined while the query cannot run yet.
 */
export function useQuery<N extends CallName>(
  name: N,
  input: CallInput<N> | undefined,
  { kinds, id: only }: QueryOptions = {},
): Query<CallReply<N>> {
  const id = input === undefined ? '' : JSON.stringify(input)
  const entry = useMemo(
    () => (input === undefined ? undefined : entryOf(name, input as Record<string, unknown>)),
    [name, id],
  )
  const followed = kinds?.join() ?? ''
  useEffect(() => {
    if (!entry) return
    entry.users++
    if (!entry.request) void load(entry)
    const project = entry.input['project']
    const wanted = followed.split(',')
    const stop =
      typeof project === 'string' && followed !== ''
        ? onChange({ project, runs: wanted.includes('run') }, (kind, changed) => {
            const isOther = only !== undefined && changed !== undefined && changed !== only
            if (kind === '*' || (wanted.includes(kind) && !isOther)) scheduleLoad(entry)
          })
        : undefined
    return () => {
      stop?.()
      if (--entry.users > 0) return
      entry.request?.abort()
      entry.request = undefined
    }
  }, [entry, followed, only])
  const state = (entry?.state ?? idle) as ReadonlySignal<Loaded<CallReply<N>>>
  return { state, reload: () => void (entry && load(entry)) }
}

type Item<R> = R extends { readonly items: readonly (infer T)[] } ? T : never
/** The pages of a list that were loaded so far. */
export interface Pages<T> {
  readonly list: Growing<T>
  /** The items of `list` as an array. The first read after each page copies the list. */
  readonly items: readonly T[]
  readonly more: boolean
  readonly loading: boolean
  readonly error?: ApiError
}
/** A list that a component uses page by page. */
export interface Listing<T> {
  readonly state: ReadonlySignal<Pages<T>>
  /** Loads the next page. Does nothing while one is being loaded, and after the last page. */
  more(): void
  /** Loads the first page again and keeps the others. */
  reload(): void
  /** Loads the first page again and drops the others. Used when the list is scrolled to the top. */
  restart(): void
}

/** Options of `useList`. */
export interface ListOptions<R, T> extends QueryOptions {
  /** Returns the part of an item that the list stores; by default the item itself. */
  readonly keep?: (item: R) => T
  /** If set, a long list stores its items as text, which shortens garbage collections. */
  readonly packing?: Packing<T>
}

/**
 * Uses a paged list in a component. When one of its records changes, the first page is loaded again
 * and the other pages are kept.
 * @param options `keep` and `packing` must be the same references in every render.
 */
export function useList<N extends CallName, T = Item<CallReply<N>>>(
  name: N,
  input: CallInput<N> | undefined,
  { keep, packing, ...options }: ListOptions<Item<CallReply<N>>, T> = {},
): Listing<T> {
  const kept = (data: unknown): PageOf<T> => {
    const page = data as PageOf<Item<CallReply<N>>>
    return { ...page, items: keep ? page.items.map(keep) : (page.items as unknown as T[]) }
  }
  const first = useQuery(name, input, options)
  const id = input === undefined ? '' : JSON.stringify(input)
  const known = useMemo(
    () => signal<Known<T>>({ ...nothingKnown, items: Growing.of<T>([], packing) }),
    [name, id],
  )
  useEffect(() => {
    let merged: unknown
    return effect(() => {
      const { data } = first.state.value
      if (data === undefined || data === merged) return
      merged = data
      known.value = mergeFirst(known.peek(), kept(data))
    })
  }, [known, first.state])
  const state = useMemo(
    () =>
      computed((): Pages<T> => {
        const { data, error, loading } = first.state.value
        const { items, next, loading: loadingMore, error: failed = error } = known.value
        // Until the effect has stored the first page in `known`, that page is shown alone.
        const list = items.length > 0 || !data ? items : Growing.of(kept(data).items)
        return {
          list,
          get items() {
            return list.all
          },
          more: next !== undefined,
          loading: loading || loadingMore,
          ...(failed && { error: failed }),
        }
      }),
    [known, first.state],
  )
  const more = async (): Promise<void> => {
    const before = known.peek()
    const { next, loading } = before
    if (next === undefined || loading || input === undefined) return
    const { error: _, ...rest } = before
    known.value = { ...rest, loading: true }
    try {
      const page = kept(await call(name, { ...input, cursor: next } as CallInput<N>))
      const expected = known.peek()
      // If the list was cut in the meantime, the page does not follow the list's last item, so the
      // page is dropped.
      if (expected.next !== next) return
      const added = addPage(expected, page)
      // The items are added after the scroll events of the frame. Their handlers read the scroll
      // positions of lists, and would otherwise have to wait for the layout of the new items.
      await new Promise(requestAnimationFrame)
      const now = known.peek()
      if (now === expected) known.value = added
      else if (now.next === next) known.value = addPage(now, page)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      known.value = { ...known.peek(), loading: false, error }
    }
  }
  const restart = (): void => {
    known.value = { ...known.peek(), wanted: 0 }
    first.reload()
  }
  return { state, more: () => void more(), reload: first.reload, restart }
}
