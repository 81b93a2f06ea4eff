/**
 * Defines the stored row of a run, caches and writes such rows, and finds the run of a project by
 * id.
 */
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { isOfLoop, type RunRecord } from '../../../protocol/loops/record.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import type { Known, Packed } from '../../shapes.ts'
import type { Store, Value } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { countRun } from '../overview/counts.ts'
import type { FedRun } from './frames.ts'

/** A stored run. `last`: cursor of its newest applied event. */
export interface RunRow {
  /** The number of the run in the view's file. */
  readonly n: number
  readonly project: number
  readonly created_at: number
  /**
   * The run's own spec as JSON, or the hash of the spec that the runs of a workflow version share.
   */
  readonly spec: string | null
  /** The immutable values of the run that frames of the feed need. */
  readonly fed: FedRun
  record: RunRecord
  last: number
  /** The values of the indexed columns as they are stored; undefined before the first write. */
  stored: readonly Value[] | undefined
}

const COLUMNS = [
  'status',
  'ended_at',
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
    completed_at,
  } = record
  const ended_at =
    completed_at !== undefined && terminal.has(status) ? Date.parse(completed_at) : null
  if (!isOfLoop(record))
    return [
      status,
      ended_at,
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
    ended_at,
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

/** The columns that are needed to unpack the record of a run. */
export const RUN_COLUMNS = 'id, created_at, status, queue, initiated_by, record'

/** The columns of a stored run that `RUN_COLUMNS` lists. */
export interface PackedRun {
  readonly id: string
  readonly created_at: number
  readonly status: string
  readonly queue: string
  readonly initiated_by: string | null
  readonly record: string
}
const known = ({
  id,
  created_at,
  status,
  queue,
  initiated_by,
}: Omit<PackedRun, 'record'>): Known => ({
  texts: [id, status, queue, initiated_by],
  at: created_at,
})
/** Unpacks the record of a stored run. */
export const recordOf = (store: Store, row: PackedRun): RunRecord =>
  store.shapes.unpack(JSON.parse(row.record) as Packed, known(row))

const INSERT = `INSERT INTO runs (n, id, project, created_at, spec, last, record, ${COLUMNS.join(', ')})
                VALUES (?, ?, ?, ?, ?, ?, ?${', ?'.repeat(COLUMNS.length)})`

const TOUCH = 'UPDATE runs SET last = ?, record = ? WHERE n = ?'

const MOVE = 'UPDATE runs SET last = ?, record = ?, status = ?, ended_at = ? WHERE n = ?'

const REPLACE = `UPDATE runs
                 SET last = ?, record = ?, ${COLUMNS.map((column) => `${column} = ?`).join(', ')}
                 WHERE n = ?`

// An UPDATE makes SQLite update every index that contains a column that the statement sets.
// Therefore, each kind of change has its own statement, which sets only the columns that it needs.
function save(store: Store, row: RunRow, id: string): void {
  const { n } = row
  const next = indexed(row.record)
  const [status, ended_at, queue, , , initiated_by] = next as [
    string,
    number | null,
    string,
    unknown,
    unknown,
    string | null,
  ]
  const { stored, created_at } = row
  const json = JSON.stringify(
    store.shapes.pack(row.record, known({ id, created_at, status, queue, initiated_by })),
  )
  if (!stored)
    store.run(INSERT, n, id, row.project, row.created_at, row.spec, row.last, json, ...next)
  else if (next.every((value, i) => value === stored[i])) store.run(TOUCH, row.last, json, n)
  else if (next.every((value, i) => i <= 1 || value === stored[i]))
    store.run(MOVE, row.last, json, status, ended_at, n)
  else store.run(REPLACE, row.last, json, ...next, n)
  countRun(store, row.project, status, stored?.[0] as string | undefined)
  row.stored = next
}

interface Stored extends PackedRun {
  readonly n: number
  readonly project: number
  readonly spec: string | null
  readonly last: number
}

function load(store: Store, id: string): RunRow | undefined {
  const row = store.one<Stored>(
    `SELECT n, project, spec, last, ${RUN_COLUMNS} FROM runs WHERE id = ?`,
    id,
  )
  if (!row) return undefined
  const { n, project, created_at, spec, last } = row
  const record = recordOf(store, row)
  const fed = fedRun(n, record)
  return { n, project, created_at, spec, last, fed, record, stored: indexed(record) }
}

/** Returns the cache of runs by id. Applied entries add runs to the cache; queries do not. */
export const runCache = (store: Store): WriteBackCache<RunRow> =>
  store.cacheOf(
    'runs',
    () =>
      new WriteBackCache(
        (id) => load(store, id),
        (row, id) => save(store, row, id),
        {
          copy: (row) => ({ ...row, record: extended(row.record) }),
          changes: ({ record }) => !terminal.has(record.status),
        },
      ),
  )

/** Whether a run is cached and has not ended. */
export function isActive(store: Store, id: string): boolean {
  const row = runCache(store).peek(id)
  return row !== undefined && !terminal.has(row.record.status)
}

/** Returns the row of a run; undefined if the project has no such run. */
export function runRow(store: Store, project: number, id: string): RunRow | undefined {
  const row = runCache(store).peek(id) ?? load(store, id)
  return row?.project === project ? row : undefined
}

/** Returns the immutable values of a run that frames of the feed need. */
export const fedRun = (n: number, { id, definition_id, loop_id }: RunRecord): FedRun => ({
  n,
  id,
  definition_id,
  loop_id,
})

/** The refusal for a run that the project does not have. */
export const missingRun: Refusal = refuse(
  'not_found',
  { resource: 'run' },
  'There is no such run in this project.',
)
