/**
 * Searches runs with filters and in orders that no index supports. The rows of an index are read in
 * the order of the list, in parts, and each row is compared with the filters. A page ends after
 * `MAX_ROWS.page` rows even if it is not full. Its position is then the position of the last row
 * that was read.
 */

import { isId } from '../../../protocol/ids.ts'
import { type RunRecord, shownRun } from '../../../protocol/loops/record.ts'
import { runStatuses } from '../../../protocol/loops/run.ts'
import { COUNT_LIMIT, type RunCount } from '../../../protocol/runs/filters.ts'
import { type Run, terminal } from '../../../protocol/runs/schema.ts'
import { allOf, type Condition } from '../../conditions.ts'
import type { InParts } from '../../define-view.ts'
import {
  type Direction,
  limitOf,
  MAX_PAGE_CHARACTERS,
  type Page,
  page,
  positionCondition,
} from '../../page.ts'
import type { Store, Value } from '../../store.ts'
import { jobsById } from '../jobs/jobs.ts'
import { watchOf } from '../workers/workers.ts'
import {
  equalities,
  equalityOf,
  type RunFilters,
  type RunQuestion,
  rangesOf,
  type Scan,
  statusesOf,
} from './filters.ts'
import { type PackedRun, RUN_COLUMNS, recordOf } from './run-row.ts'
import { stepOf, stepsOf } from './steps.ts'
import { waitingOfRun } from './waiting.ts'

/** Number of rows that are read in one part. */
const ROWS = 500
/** Maximum number of rows that are read for a page, and for a count. */
const MAX_ROWS = { page: 20_000, count: 200_000 } as const

/** Whether the filters or the order need a search. */
export const isSearch = ({
  q,
  failed_step,
  waiting_on,
  ended_after,
  ended_before,
  sort,
}: RunQuestion): boolean =>
  [q, failed_step, waiting_on, ended_after, ended_before].some((value) => value !== undefined) ||
  sort === 'ended'

/** A row of an index. `record` is null if the row does not match the conditions in SQL. */
interface Candidate extends Omit<PackedRun, 'record'> {
  readonly n: number
  readonly at: number
  readonly record: string | null
}
type Hit = Candidate & PackedRun
interface Search {
  /** The scans whose results are merged. */
  readonly scans: readonly Scan[]
  readonly column: 'created_at' | 'ended_at'
  readonly direction: Direction
  /** A condition in SQL that all matching rows fulfil. Other rows may fulfil it, too. */
  readonly condition: { readonly sql: string; readonly values: readonly Value[] }
  /** Tests a row that fulfils the condition; absent if only matching rows fulfil it. */
  readonly accepts?: (hit: Hit) => boolean
}

const like = (text: string): string => `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
const lower = (text: string): string => text.replaceAll(/[A-Z]+/g, (part) => part.toLowerCase())

/**
 * Returns two tests for a text: a condition in SQL, which also accepts records with the text in
 * other fields, and an exact test.
 */
function textTest(store: Store, project: number, q: string) {
  const pattern = like(q)
  const workflows = store
    .all<{ id: string }>(
      `SELECT id FROM workflows
       WHERE project = ? AND (
         handle LIKE ? ESCAPE '\\' OR json_extract(record, '$.name') LIKE ? ESCAPE '\\')`,
      project,
      pattern,
      pattern,
    )
    .map(({ id }) => id)
  const named = new Set(workflows)
  const needle = lower(q)
  const has = (text: string | undefined) => text !== undefined && lower(text).includes(needle)
  return {
    condition: [
      `(id LIKE ? ESCAPE '\\' OR record LIKE ? ESCAPE '\\' ` +
        'OR definition_id IN (SELECT value FROM json_each(?)))',
      pattern,
      like(JSON.stringify(q).slice(1, -1)),
      JSON.stringify(workflows),
    ] as const,
    accepts: ({
      id,
      external_id,
      name,
      loop_name,
      error_type,
      error_message,
      definition_id,
    }: RunRecord) =>
      [id, external_id, name, loop_name, error_type, error_message].some(has) ||
      named.has(definition_id),
  }
}

function searchOf(store: Store, project: number, now: number, input: RunQuestion): Search {
  const { q, failed_step, waiting_on, sort } = input
  // A text that is the id of a run finds only this run.
  const exact = q !== undefined && isId(q, 'run')
  const byEnd = sort === 'ended'
  const statuses = waiting_on
    ? (statusesOf(input) ?? runStatuses).filter((status) => !terminal.has(status))
    : statusesOf(input)
  const given = equalities.filter(({ name }) => input[name] !== undefined)
  const first = byEnd || exact ? undefined : given.find(({ byStatus }) => !byStatus)
  const text = q === undefined || exact ? undefined : textTest(store, project, q)
  const tested: Condition[] = [
    ...given.filter((one) => one !== first).map((one) => equalityOf(one, input)),
    ...rangesOf(input, byEnd ? 'created' : 'ended'),
    ...(text ? [text.condition] : []),
    ...(failed_step === undefined
      ? []
      : [['EXISTS (SELECT 1 FROM steps WHERE run = runs.n AND step = ?)', failed_step] as const]),
  ]
  // A filter by status either selects ranges of the index, or becomes a condition on each row.
  const byStatus = !byEnd && !exact && !first && statuses !== undefined
  if (statuses && !byStatus)
    tested.push(['status IN (SELECT value FROM json_each(?))', JSON.stringify(statuses)])
  const index = exact
    ? 'sqlite_autoindex_runs_1'
    : byEnd
      ? 'runs_ended'
      : (first?.index ?? (byStatus ? 'runs_status' : 'runs_new'))
  const fixed: readonly Condition[] = [
    ['project = ?', project],
    ...(exact ? [['id = ?', q] as const] : []),
    ...(first ? [equalityOf(first, input)] : []),
    ...(byEnd ? [['ended_at IS NOT NULL'] as const] : []),
    ...rangesOf(input, byEnd ? 'ended' : 'created'),
  ]
  const scan = (...more: readonly Condition[]): Scan => ({ index, conditions: [...fixed, ...more] })
  const jobs = jobsById(store, project)
  const watching = waiting_on && watchOf(store, project, now)
  const accepts = ({ n, ...row }: Hit): boolean => {
    const record = recordOf(store, row)
    const { id, created_at } = row
    if (text && !text.accepts(record)) return false
    if (
      failed_step !== undefined &&
      stepOf(store, { n, id, created_at }, failed_step)?.status !== 'failed'
    )
      return false
    if (!waiting_on || !watching) return true
    const steps = stepsOf(store, { n, project, created_at, record })
    const kind = waitingOfRun(record, steps, jobs, watching)?.kind
    return kind !== undefined && waiting_on.includes(kind)
  }
  return {
    scans: byStatus ? statuses.map((status) => scan(['status = ?', status])) : [scan()],
    column: byEnd ? 'ended_at' : 'created_at',
    direction: input.order === 'asc' ? 'ASC' : 'DESC',
    condition: allOf(tested),
    ...((text || failed_step !== undefined || waiting_on) && { accepts }),
  }
}

/**
 * The rows of one scan, in its order, read in parts. `next` is the first row that was not taken;
 * undefined if the next part must be read first, or if there are no more rows.
 */
class Lane {
  readonly #store: Store
  readonly #search: Search
  readonly #scan: Scan
  readonly #counts: boolean
  #after: readonly Value[] | undefined
  #rows: Candidate[] = []
  #at = 0
  #ended = false
  constructor(
    store: Store,
    search: Search,
    scan: Scan,
    after: readonly Value[] | undefined,
    counts: boolean,
  ) {
    this.#store = store
    this.#search = search
    this.#scan = scan
    this.#after = after
    this.#counts = counts
  }
  get next(): Candidate | undefined {
    return this.#rows[this.#at]
  }
  get ended(): boolean {
    return this.#ended && this.next === undefined
  }
  take(): void {
    this.#at++
  }
  /** Reads the next part. Returns the number of rows that were read. */
  read(): number {
    const { condition, column, direction, accepts } = this.#search
    const { index, conditions } = this.#scan
    const after = positionCondition([column, 'id'], direction, this.#after)
    const where = allOf([...conditions, ...after])
    const record = this.#counts && !accepts ? "''" : 'record'
    const found = `CASE WHEN ${condition.sql} THEN ${record} END AS record`
    this.#rows = []
    this.#at = 0
    this.#ended = true
    let left = MAX_PAGE_CHARACTERS
    for (const row of this.#store.each<Candidate>(
      `SELECT n, ${column} AS at, ${RUN_COLUMNS.replace('record', found)}
       FROM runs INDEXED BY ${index}
       WHERE ${where.sql} ORDER BY ${column} ${direction}, id ${direction} LIMIT ?`,
      ...condition.values,
      ...where.values,
      ROWS,
    )) {
      this.#rows.push(row)
      left -= row.record?.length ?? 0
      if (left < 0 || this.#rows.length === ROWS) {
        this.#ended = false
        this.#after = [row.at, row.id]
        break
      }
    }
    return this.#rows.length
  }
}

/**
 * Passes the matching runs to `take`, in order, until `take` returns false. If the search ends
 * because `most` rows were read, returns the position of the last row that was examined. Otherwise,
 * returns undefined.
 */
function* find(
  store: Store,
  search: Search,
  { after, most, counts }: { after?: readonly Value[] | undefined; most: number; counts: boolean },
  take: (hit: Hit) => boolean,
): InParts<readonly Value[] | undefined> {
  const { scans, direction, accepts } = search
  const lanes = scans.map((scan) => new Lane(store, search, scan, after, counts))
  const sign = direction === 'ASC' ? 1 : -1
  const before = (a: Candidate, b: Candidate) => (a.at - b.at || (a.id < b.id ? -1 : 1)) * sign < 0
  let read = 0
  let last: Candidate | undefined
  for (;;) {
    for (const lane of lanes) {
      if (lane.next || lane.ended) continue
      if (read >= most && last) return [last.at, last.id]
      if (read > 0) yield
      read += lane.read()
    }
    const [first, ...others] = lanes.filter(({ next }) => next)
    if (!first) return undefined
    let lane = first
    for (const other of others)
      if (before(other.next as Candidate, lane.next as Candidate)) lane = other
    last = lane.next as Candidate
    lane.take()
    if (last.record === null) continue
    const hit = last as Hit
    if ((!accepts || accepts(hit)) && !take(hit)) return undefined
  }
}

/** Returns a page of the runs that match. */
export function* searchRuns(
  store: Store,
  project: number,
  now: number,
  input: RunQuestion,
): InParts<Page<Run>> {
  const hits: Hit[] = []
  const wanted = limitOf(input) + 1
  let left = MAX_PAGE_CHARACTERS
  const position = yield* find(
    store,
    searchOf(store, project, now, input),
    { after: input.after, most: MAX_ROWS.page, counts: false },
    (hit) => {
      hits.push(hit)
      left -= hit.record.length
      return hits.length < wanted && (left >= 0 || hits.length < 2)
    },
  )
  const found = page(
    hits,
    input,
    (hit) => shownRun(recordOf(store, hit)),
    ({ at, id }) => [at, id],
  )
  return position && !found.position ? { ...found, position } : found
}

/** Returns the number of runs that match, up to `COUNT_LIMIT`. */
export function* countFound(
  store: Store,
  project: number,
  now: number,
  input: RunFilters,
): InParts<RunCount> {
  let count = 0
  const position = yield* find(
    store,
    searchOf(store, project, now, input),
    { most: MAX_ROWS.count, counts: true },
    () => ++count <= COUNT_LIMIT,
  )
  return {
    count: Math.min(count, COUNT_LIMIT),
    more: count > COUNT_LIMIT || position !== undefined,
  }
}
