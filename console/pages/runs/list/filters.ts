/**
 * The filters of the list of runs. In URLs and in saved views, they have the names of the
 * parameters of `run.list`. This module needs no browser.
 */
import type { CallInput } from '../../../api/client.ts'

/** Number of runs per page. */
const PAGE_SIZE = 200
/** Names of filters with one value. */
const singleFilters = [
  'q',
  'definition_id',
  'loop_id',
  'workflow_type',
  'queue',
  'initiated_by',
  'external_id',
  'source_event_id',
  'parent_run_id',
  'failed_step',
  'created_after',
  'created_before',
  'ended_after',
  'ended_before',
] as const
/** Names of filters with several values. */
const listFilters = ['status', 'waiting_on'] as const

type Single = (typeof singleFilters)[number]
type List = (typeof listFilters)[number]
export type FilterName = Single | List
/** Filters as parameters of `run.list` and `run.bulk`. */
export type RunFilter = { readonly [N in Single]?: string } & {
  readonly [N in List]?: string[]
}
/** The order of the list. */
export interface RunSort {
  readonly by: 'created' | 'ended'
  readonly order: 'asc' | 'desc'
}

/** Returns the filters in the query of a URL. */
export function filterOf(query: URLSearchParams): RunFilter {
  const filter: Record<string, string | string[]> = {}
  for (const name of singleFilters) {
    const value = query.get(name)?.trim() ?? ''
    if (value !== '') filter[name] = value
  }
  for (const name of listFilters) {
    const values = (query.get(name) ?? '').split(',').filter((value) => value !== '')
    if (values.length > 0) filter[name] = values
  }
  return filter as RunFilter
}

/** Returns the order in the query of a URL; newest first by default. */
export const sortOf = (query: URLSearchParams): RunSort => ({
  by: query.get('sort') === 'ended' ? 'ended' : 'created',
  order: query.get('order') === 'asc' ? 'asc' : 'desc',
})

/** Returns the input of `run.list` for the first page that the query of a URL selects. */
export function listInput(project: string, query: URLSearchParams): CallInput<'run.list'> {
  const { by, order } = sortOf(query)
  return {
    project,
    ...filterOf(query),
    ...(by === 'ended' && { sort: 'ended' }),
    ...(order === 'asc' && { order: 'asc' }),
    limit: PAGE_SIZE,
  } as CallInput<'run.list'>
}

/**
 * Returns the query parameters for filters and an order. Absent filters are '', which removes them
 * from the URL.
 */
export function queryOf(
  filter: Readonly<Record<string, unknown>>,
  sort: RunSort | undefined,
): Record<string, string> {
  const query: Record<string, string> = {}
  for (const name of [...singleFilters, ...listFilters]) {
    const value = filter[name]
    query[name] = Array.isArray(value) ? value.join(',') : value === undefined ? '' : String(value)
  }
  query['sort'] = sort?.by === 'ended' ? 'ended' : ''
  query['order'] = sort?.order === 'asc' ? 'asc' : ''
  return query
}

/**
 * Returns the active filters as pairs of name and value, without the search text and the status.
 */
export const activeFilters = (filter: RunFilter): readonly (readonly [FilterName, string])[] =>
  (Object.entries(filter) as [FilterName, string | string[]][])
    .filter(([name]) => name !== 'q' && name !== 'status')
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])

/** Returns a time as the value of a `datetime-local` field, in local time; '' if it is invalid. */
export function localTime(iso: string | undefined): string {
  const at = iso === undefined ? Number.NaN : Date.parse(iso)
  if (Number.isNaN(at)) return ''
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
/** Returns the value of a `datetime-local` field as ISO time; '' if it is incomplete. */
export function isoTime(local: string): string {
  const at = new Date(local).getTime()
  return Number.isNaN(at) ? '' : new Date(at).toISOString()
}
