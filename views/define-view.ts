/**
 * The definition of a view of one resource: how entries become rows, the tables of these rows, and
 * the queries on them. `views.ts` lists the definitions.
 */
import type { Kind, PlacedEntry } from '../protocol/entry.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { DeepReadonly, ViewQueries, ViewQueryName } from '../protocol/queries/views.ts'
import type { Store } from './store.ts'

/** The context in which a query is answered. */
export interface QueryContext {
  readonly store: Store
  /** The number of the project in the view's file, as `Store.findProject` returns it. */
  readonly project: number
  /** The time of the query, in Unix milliseconds. */
  readonly now: number
  /** Milliseconds for which a worker that is no longer connected is still listed. */
  readonly stale: number
  readonly organization: string
  /** The cursor up to which the view has applied everything. */
  readonly current: number
  /**
   * The cursor before which entries are missing, because the journal was trimmed before the view
   * applied them; 0 if none are missing.
   */
  readonly oldest: number
}
/**
 * A query that is answered in parts, because it may read many rows. Between two parts, which should
 * take at most a few milliseconds, other queries are answered and entries are applied, so a part
 * must not rely on rows that an earlier part has read.
 */
export type InParts<R> = Generator<undefined, R, undefined>
/** The implementation of each query; `ViewQueries` defines its input and reply. */
export type Queries<N extends ViewQueryName = ViewQueryName> = {
  readonly [K in N]: (
    context: QueryContext,
    input: ViewQueries[K]['input'],
  ) =>
    | DeepReadonly<ViewQueries[K]['reply']>
    | Refusal
    | InParts<DeepReadonly<ViewQueries[K]['reply']> | Refusal>
}
/** A function that applies an entry to the tables and caches of the store. */
export type Arm = (store: Store, place: PlacedEntry) => void

/**
 * Work on the tables that is done in small parts between queries, such as deleting rows that no
 * query can find. If anything is due, `perform` performs a part that takes a few milliseconds.
 */
export interface Upkeep {
  isDue(store: Store): boolean
  perform(store: Store): void
}

export interface ViewDefinition<
  N extends ViewQueryName = ViewQueryName,
  K extends Kind = Kind,
  Arms = Readonly<Partial<Record<Kind, Arm | readonly Arm[]>>>,
> {
  /**
   * For each kind of actor, the functions that apply its entries, in the order in which they run.
   * For a kind with audited events, `applyAudit` comes first. For `organization` and `project`, the
   * view `access` contributes `applyAudit`.
   */
  readonly kinds: Arms
  /**
   * The kinds for which the functions in `kinds` change only the caches and append-only rows of
   * `Store`, which are written later. The functions for other kinds may write to the tables
   * immediately.
   */
  readonly gathers?: readonly NoInfer<K>[]
  /**
   * The statements that create the tables. A table `WITHOUT ROWID` must have small rows: a row
   * larger than about a quarter of a page spills to separate overflow pages
   * (https://www.sqlite.org/fileformat2.html, payload overflow).
   */
  readonly tables: string
  readonly upkeep?: Upkeep
  readonly queries: Queries<N>
}

/**
 * Returns the definition unchanged. Defining a query that `ViewQueries` lacks is a compile error.
 */
export const defineView = <N extends ViewQueryName, K extends Kind>(
  definition: ViewDefinition<N, K, { readonly [P in K]: Arm | readonly Arm[] }>,
): ViewDefinition<N> => definition as ViewDefinition<N>
