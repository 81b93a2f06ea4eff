/**
 * Reads the stored log lines of a run, page by page, with filters. A page examines a bounded number
 * of batches, so it may be short or empty even if more lines match.
 */
import {
  type LogBatch,
  type LogFilters,
  type LogLine,
  logLevels,
  logLimits,
  type NumberedBatch,
  positionOf,
  type RunLogLine,
  type RunLogPage,
  sequenceOf,
} from '../../protocol/jobs/logs.ts'
import type { LogPart, LogStore } from './ports.ts'

/** Maximum number of reads from the store for one page. */
const MAX_READS = 8

/**
 * A request for at most `limit` lines that match the filters. In ascending order, these are the
 * lines after the position `after`, and in descending order the lines before it.
 */
export interface LogQuestion extends LogFilters {
  readonly after?: number
  readonly limit: number
  readonly order?: 'asc' | 'desc'
}
/** Creates the predicate that checks whether a line matches all filters. */
function matching({ step_key, job_id, level, contains }: LogFilters) {
  const least = level === undefined ? 0 : logLevels.indexOf(level)
  const needle = contains?.toLowerCase()
  return (batch: LogBatch, line: LogLine): boolean =>
    (step_key === undefined || batch.step_key === step_key) &&
    (job_id === undefined || batch.job_id === job_id) &&
    logLevels.indexOf(line.level) >= least &&
    (needle === undefined || line.text.toLowerCase().includes(needle))
}
const recordOf = (
  { sequence, lines, job_id, attempt, step_key, worker_instance_id }: NumberedBatch,
  index: number,
): RunLogLine => ({
  sequence: positionOf(sequence, index),
  ...(lines[index] as LogLine),
  job_id,
  attempt,
  ...(step_key !== undefined && { step_key }),
  worker_instance_id,
})

/**
 * Returns a page of lines of a target. Its `next_after` is the position that the search has
 * reached, from which the next page continues.
 * @throws Error when the store does not answer.
 */
export async function readLog(
  store: LogStore,
  project: string,
  target: string,
  { after, limit, order = 'asc', ...filters }: LogQuestion,
): Promise<RunLogPage> {
  const ascending = order === 'asc'
  const matches = matching(filters)
  const items: RunLogLine[] = []
  let place = after
  for (let reads = 1; ; reads++) {
    const part: LogPart = ascending
      ? await store.from(project, target, sequenceOf((place ?? -1) + 1))
      : await store.before(project, target, place && sequenceOf(place - 1) + 1)
    const all = linesOf(part.batches, ascending, place)
    for (const [read, { batch, index }] of all.entries()) {
      place = positionOf(batch.sequence, index)
      if (matches(batch, batch.lines[index] as LogLine)) items.push(recordOf(batch, index))
      if (items.length === limit)
        return { items, has_more: part.more || read < all.length - 1, next_after: place }
    }
    // All lines of the part were examined, so the next read begins at the following batch or, in
    // descending order, at the preceding one.
    place = edgeOf(part, ascending) ?? place
    if (!part.more || reads === MAX_READS)
      return { items, has_more: part.more, next_after: place ?? after ?? 0 }
  }
}
/** Returns the lines after a position, in the order of the page. */
function linesOf(
  batches: readonly NumberedBatch[],
  ascending: boolean,
  place: number | undefined,
): { readonly batch: NumberedBatch; readonly index: number }[] {
  const all = batches.flatMap((batch) =>
    batch.lines.map((_, index) => ({ batch, index, at: positionOf(batch.sequence, index) })),
  )
  if (!ascending) all.reverse()
  return all.filter(({ at }) => place === undefined || (ascending ? at > place : at < place))
}
/**
 * Returns the last position of a part in the order of the page. In ascending order, this is the
 * highest position of the last batch, and in descending order the lowest of the first batch.
 * Returns undefined for an empty part.
 */
function edgeOf({ batches }: LogPart, ascending: boolean): number | undefined {
  const last = ascending ? batches.at(-1) : batches[0]
  return last && positionOf(last.sequence, ascending ? logLimits.lines - 1 : 0)
}
