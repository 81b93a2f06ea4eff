/**
 * The definition of a view of one resource: how entries become rows, the tables of these rows, and
 * the queries on them. `views.ts` lists the definitions.
 */
import type { Kind, Placed } from '../protocol/entry.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { DeepReadonly, ViewQueries, ViewQueryName } from '../protocol/queries/views.ts'
import type { Store } from './store.ts'

/** The context of a query. */
export interface QueryContext {
  readonly store: Store
  /** Number of the project, see `Store.findProject`. */
  readonly project: number
  /** The time of the query, in Unix milliseconds. */
  readonly now: number
  /** Milliseconds for which a lost worker is still listed. */
  readonly stale: number
  readonly organization: string
  /**
   * The cursor up to which the view has applied everything, and the cursor below which the journal
   * was trimmed.
   */
  readonly current: number
  readonly oldest: number
}
/** A query of each name, with the input and the reply that `ViewQueries` gives it. */
export type Queries<N extends ViewQueryName = ViewQueryName> = {
  readonly [K in N]: (
    context: QueryContext,
    input: ViewQueries[K]['input'],
  ) => DeepReadonly<ViewQueries[K]['reply']> | Refusal
}
/** Applies an entry to the tables. */
export type Arm = (store: Store, place: Placed) => void

export interface ViewDefinition<
  N extends ViewQueryName = ViewQueryName,
  K extends Kind = Kind,
  Arms = Readonly<Partial<Record<Kind, Arm | readonly Arm[]>>>,
> {
  /**
   * The arms that apply the entries of a kind, in their order. A resource of a project whose changes
   * are audited has `applyAudit` as its first arm.
   */
  readonly kinds: Arms
  /**
   * The kinds whose arms only make changes that `Store` holds back; the arms of other kinds write
   * at once.
   */
  readonly gathers?: readonly NoInfer<K>[]
  /**
   * The statements that create the tables. A table `WITHOUT ROWID` must hold small rows: a row that
   * is larger than a quarter of a page does not fit and gets a page of its own
   * (https://www.sqlite.org/fileformat2.html, payload overflow).
   */
  readonly tables: string
  readonly queries: Queries<N>
}

/** Returns the definition. A name that `ViewQueries` does not have is an error of its type. */
export const defineView = <N extends ViewQueryName, K extends Kind>(
  definition: ViewDefinition<N, K, { readonly [P in K]: Arm | readonly Arm[] }>,
): ViewDefinition<N> => definition as ViewDefinition<N>
