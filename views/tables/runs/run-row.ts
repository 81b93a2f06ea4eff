/** The stored row of a run, its cache, and the lookup of a project's run. */
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { isOfLoop, type RunRecord } from '../../../protocol/loops/record.ts'
import { Kept, type Store, type Value } from '../../store.ts'

/** A stored run. `last`: cursor of its newest applied event. */
export interface RunRow {
  /** The number of the run in the view's file. */
  readonly n: number
  readonly project: number
  readonly created_at: number
  /**
   * The run's own spec as JSON, or the hash of the spec of its workflow version, which runs share.
   */
  readonly spec: string | null
  record: RunRecord
  last: number
  /** The values of the indexed columns as they are stored; undefined before the first write. */
  stored: readonly Value[] | undefined
}

const COLUMNS = [
  'status',
  'queue',
  'workflow_type',
  'parent',
  'initiated_by',
  'external_id',
  'definition_id',
  'loop',
  'source_event',
] as const

/**
 * Returns the values of the indexed columns of a run. The published record of a run of a loop has
 * no queue, type, initiator, external id or definition, so filters by these fields do not match
 * such a run.
 */
function indexed(record: RunRecord): Value[] {
  const {
    status = 'queued',
    queue = 'default',
    workflow_type,
    parent_run_id,
    initiated_by,
    external_id,
    definition_id,
  } = record
  if (!isOfLoop(record))
    return [
      status,
      queue,
      workflow_type ?? null,
      parent_run_id ?? null,
      initiated_by ?? null,
      external_id ?? null,
      definition_id || null,
      null,
      null,
    ]
  const source = record.meta?.['source_event_id']
  return [
    status,
    '',
    null,
    parent_run_id ?? null,
    null,
    null,
    null,
    record.loop_id,
    typeof source === 'string' ? source : null,
  ]
}

const INSERT = `INSERT INTO runs (n, id, project, created_at, spec, last, record, ${COLUMNS.join(', ')})
                VALUES (?, ?, ?, ?, ?, ?, ?${', ?'.repeat(COLUMNS.length)})`

const TOUCH = 'UPDATE runs SET last = ?, record = ? WHERE n = ?'

const MOVE = 'UPDATE runs SET last = ?, record = ?, status = ? WHERE n = ?'

const REPLACE = `UPDATE runs
                 SET last = ?, record = ?, ${COLUMNS.map((column) => `${column} = ?`).join(', ')}
                 WHERE n = ?`

// SQLite updates every index with a column that an UPDATE names, so each statement names only the
// columns that its kind of change needs.
function save(store: Store, row: RunRow, id: string): void {
  const { n } = row
  const json = JSON.stringify(row.record)
  const next = indexed(row.record)
  const { stored } = row
  if (!stored)
    store.run(INSERT, n, id, row.project, row.created_at, row.spec, row.last, json, ...next)
  else if (next.every((value, i) => value === stored[i])) store.run(TOUCH, row.last, json, n)
  else if (next.every((value, i) => i === 0 || value === stored[i]))
    store.run(MOVE, row.last, json, next[0] ?? null, n)
  else store.run(REPLACE, row.last, json, ...next, n)
  row.stored = next
}

interface Stored {
  readonly n: number
  readonly project: number
  readonly created_at: number
  readonly spec: string | null
  readonly record: string
  readonly last: number
}

function load(store: Store, id: string): RunRow | undefined {
  const row = store.one<Stored>(
    'SELECT n, project, created_at, spec, record, last FROM runs WHERE id = ?',
    id,
  )
  if (!row) return undefined
  const record = JSON.parse(row.record) as RunRecord
  return { ...row, record, stored: indexed(record) }
}

/** The cache of runs by id. Applying entries fills it; queries add nothing to it. */
export const keptRuns = (store: Store): Kept<RunRow> =>
  store.kept(
    'runs',
    () =>
      new Kept(
        (id) => load(store, id),
        (row, id) => save(store, row, id),
      ),
  )

/** Returns the row of a project's run. */
export function runRow(store: Store, project: number, id: string): RunRow | undefined {
  const row = keptRuns(store).peek(id) ?? load(store, id)
  return row?.project === project ? row : undefined
}

/** The refusal for a run that the project does not have. */
export const missingRun: Refusal = refuse(
  'not_found',
  { resource: 'run' },
  'There is no such run in this project.',
)
