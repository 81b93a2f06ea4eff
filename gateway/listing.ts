/**
 * Helpers for queries that a gateway answers itself: types of their handlers, access to the cached
 * directories, and pagination. The queries themselves are in `queries/` and `commands/`.
 */

import type { OrganizationDirectory, ProjectDirectory } from '../protocol/access/directory.ts'
import type { Api, RowName } from '../protocol/api.ts'
import type { Input, Reply } from '../protocol/contract.ts'
import { isRefusal, type Refusal, refuse } from '../protocol/errors.ts'
import type { Caller } from './auth/authenticate.ts'
import type { Directory } from './directory.ts'
import { openCursor, sealCursor } from './http/cursor.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import type { World } from './ports.ts'

/** An admitted and validated query. */
export interface LocalContext {
  readonly world: World
  readonly directory: Directory
  readonly caller: Caller
  /** Id of the call's project. Absent for rows of the organization. */
  readonly project?: string
  /** Path slots and query in one object. */
  readonly input: Readonly<Record<string, unknown>>
}
/** The handler of a query that the gateway answers itself, instead of a view. */
export type LocalQuery = (context: LocalContext) => MaybePromise<unknown | Refusal>

/**
 * Creates the handler of a query from a function with the input and reply types of the query's row.
 */
export const localQuery =
  <N extends RowName>(
    run: (context: LocalContext, input: Input<Api[N]>) => MaybePromise<Reply<Api[N]> | Refusal>,
  ): LocalQuery =>
  (context) =>
    run(context, context.input as Input<Api[N]>)
/**
 * Calls `use` with the cached directory of the organization. Returns its result, or the refusal if
 * the directory cannot be loaded.
 */
export const organizationOf = <T>(
  { directory }: LocalContext,
  use: (known: OrganizationDirectory) => T,
): MaybePromise<T | Refusal> =>
  andThen(directory.organization(), (known) => (isRefusal(known) ? known : use(known)))
/** Calls `use` with the cached directory of the call's project, like `organizationOf`. */
export const projectOf = <T>(
  { directory, project = '' }: LocalContext,
  use: (known: ProjectDirectory) => T,
): MaybePromise<T | Refusal> =>
  andThen(directory.project(project), (known) => (isRefusal(known) ? known : use(known)))
/** Returns the record, or `not_found` when it is undefined. */
export const orNotFound = <T>(record: T | undefined): T | Refusal => record ?? refuse('not_found')

interface Dated {
  readonly id: string
  readonly created_at: string
}
interface Page<T> {
  items: T[]
  has_more: boolean
  next_cursor?: string
}
/** Default number of items on a page. */
export const DEFAULT_LIMIT = 20

/**
 * Returns the page after the query's cursor, or the first page when the query has no cursor.
 * @param items all items of the list, in order.
 * @param route name of the row for which the cursors are sealed.
 * @param positionOf returns the position of an item, which must be serializable as JSON.
 * @param follows returns whether an item comes after a position.
 */
export function pageOf<T, P>(
  { world, project, input }: LocalContext,
  route: RowName,
  items: readonly T[],
  positionOf: (item: T) => P,
  follows: (item: T, position: P) => boolean,
): Page<T> | Refusal {
  const { cursor, limit = DEFAULT_LIMIT } = input as { cursor?: string; limit?: number }
  const binding = { project: project ?? world.organization(), route, filters: input }
  const opened = cursor === undefined ? undefined : openCursor(world, binding, cursor)
  if (opened && isRefusal(opened)) return opened
  const rest = opened ? items.filter((item) => follows(item, opened.position as P)) : items
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  const more = rest.length > limit && last !== undefined
  return {
    items: page,
    has_more: more,
    ...(more && { next_cursor: sealCursor(world, binding, positionOf(last)) }),
  }
}
/**
 * Returns whether a record comes after a position in a list that is sorted by creation time, newest
 * first.
 */
export const comesAfter = (a: Dated, [created_at, id]: readonly [string, string]): boolean =>
  a.created_at < created_at || (a.created_at === created_at && a.id < id)
/** Returns the records sorted by creation time and id, newest first. */
export const newestFirst = <T extends Dated>(records: readonly T[]): T[] =>
  [...records].sort((a, b) => (comesAfter(a, [b.created_at, b.id]) ? 1 : -1))
/** Returns the requested page of records, sorted by creation time, newest first. */
export const newestPage = <T extends Dated>(
  context: LocalContext,
  route: RowName,
  records: readonly T[],
): Page<T> | Refusal =>
  pageOf(
    context,
    route,
    newestFirst(records),
    ({ created_at, id }) => [created_at, id] as const,
    comesAfter,
  )
