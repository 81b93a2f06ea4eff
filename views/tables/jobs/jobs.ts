/**
 * The records of jobs, folded from the patches of queue events. The result of a job is part of the
 * queue event that ends the job. For an action of a run, it is also part of the run's
 * `action.completed` event.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { type JsonObject, parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Event, PlacedEntry } from '../../../protocol/entry.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import {
  isUnlisted,
  type Job,
  type JobHeader,
  type QueueEvent,
} from '../../../protocol/jobs/rows.ts'
import { amend, begin, type Patch } from '../../../protocol/patch.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import { MAX_WORKER_JOBS, type WorkerJob } from '../../../protocol/workers/rows.ts'
import { type IncludeQuery, type Page, type Paging, readPage, wantsAddition } from '../../page.ts'
import type { Known, Packed } from '../../shapes.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { addInvocation } from '../actions/invocations.ts'
import { feedJob } from '../runs/feed.ts'
import { missingRun, type RunRow, runRow } from '../runs/run-row.ts'
import { type InternalJob, type Watch, waitingOfJob } from '../runs/waiting.ts'
import { notInUnreadableSession, viewerValues } from '../sessions/visibility.ts'
import { countJob, lineOf } from './queues.ts'

/** Columns that never change after the first write. */
interface Fixed {
  readonly run: string | null
  readonly step: string | null
  readonly created_at: number
  readonly queue: string
}
interface JobRow {
  readonly project: number
  record: InternalJob
  /** Id of the worker session that holds the lease; null if there is no lease. */
  holder: string | null
  /** The columns as they are stored; undefined before the first write. */
  fixed: Fixed | undefined
  /** The status as it is stored; undefined before the first write. */
  written: string | undefined
}
/** A stored job, with the columns that are needed to unpack its record. */
interface PackedJob extends Fixed {
  readonly id: string
  readonly status: string
  readonly record: string
}
const COLUMNS = 'id, run, step, created_at, status, queue, record'

const known = (id: string, status: string, { run, step, created_at, queue }: Fixed): Known => ({
  texts: [id, run, `${run}:${step}`, step, status, queue],
  at: created_at,
})
const recordOf = (store: Store, row: PackedJob): InternalJob =>
  store.shapes.unpack(JSON.parse(row.record) as Packed, known(row.id, row.status, row))

function save(store: Store, row: JobRow, id: string): void {
  const { record, holder, project } = row
  const { status } = record
  // The column `line` is set only while the job waits, so that the index of waiting jobs contains
  // no other jobs. `queues.ts` defines lines.
  const line = status === 'queued' ? lineOf(record) : null
  const fixed = row.fixed ?? {
    run: record.run_id ?? null,
    step: record.step_key ?? null,
    created_at: parseTimestamp(record.created_at) ?? 0,
    queue: record.queue,
  }
  const packed = JSON.stringify(store.shapes.pack(record, known(id, status, fixed)))
  if (row.fixed)
    store.run(
      'UPDATE jobs SET status = ?, holder = ?, line = ?, record = ? WHERE id = ?',
      status,
      holder,
      line,
      packed,
      id,
    )
  else
    store.run(
      `INSERT OR REPLACE INTO jobs (${COLUMNS}, project, holder, session, line)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      id,
      fixed.run,
      fixed.step,
      fixed.created_at,
      status,
      fixed.queue,
      packed,
      project,
      holder,
      record.session_id ?? null,
      line,
    )
  countJob(store, project, record, row.written)
  row.written = status
  row.fixed = fixed
}
const jobCache = (store: Store): WriteBackCache<JobRow> =>
  store.cacheOf(
    'jobs',
    () =>
      new WriteBackCache(
        (id): JobRow | undefined => {
          const row = store.one<PackedJob & Pick<JobRow, 'project' | 'holder'>>(
            `SELECT project, holder, ${COLUMNS} FROM jobs WHERE id = ?`,
            id,
          )
          if (!row) return undefined
          const { project, holder } = row
          return { project, holder, record: recordOf(store, row), fixed: row, written: row.status }
        },
        (row, id) => save(store, row, id),
        {
          copy: (row) => ({ ...row, record: extended(row.record) }),
          changes: ({ record }) => !terminal.has(record.status),
        },
      ),
  )

/**
 * Applies an entry of a queue. Events of a job whose first event was trimmed from the journal are
 * ignored.
 */
export function applyQueue(store: Store, place: PlacedEntry): void {
  const jobs = jobCache(store)
  const project = store.numberOf(place.entry.project)
  place.entry.events.forEach((any: Event, i) => {
    const event = any as QueueEvent
    if (event.type !== 'lease.renewed' && !event.type.startsWith('job.')) return
    const { kind } = headerOf(event)
    if (kind !== undefined && isUnlisted(kind)) return
    const change: Patch<Job> | undefined =
      event.type === 'lease.renewed' ? { lease_expires_at: timestamp(event.expires_at) } : event.job
    if (!change) return
    let row = jobs.edit(event.id, event.type === 'job.queued')
    if (row ? row.project !== project : event.type !== 'job.queued') return
    if (row) row.record = amend<InternalJob>(row.record, change)
    else {
      row = {
        project,
        record: begin(begunBy(event), change),
        holder: null,
        fixed: undefined,
        written: undefined,
      }
      jobs.set(event.id, row)
    }
    let { record } = row
    if (record.gated) {
      // `gated` is moved to the end of the record, after the fields that the patch has added.
      const { gated, ...rest } = record
      record = {
        ...rest,
        ...(event.type !== 'job.admitted' && rest.status === 'queued' && { gated }),
      }
    }
    row.record = record
    if (event.type === 'job.claimed') row.holder = event.lease.session
    else if (record.status !== 'claimed') row.holder = null
    if (change.status) feedJob(store, place, place.cursor + i, record)
    if (
      event.type === 'job.completed' ||
      event.type === 'job.failed' ||
      event.type === 'job.cancelled'
    )
      addInvocation(store, project, place.cursor + i, record, event)
  })
}

/**
 * Returns the header of a new job, or an empty object if the view received none. Views receive
 * headers only of unlisted jobs, and of jobs that only workers or an environment may perform.
 */
const headerOf = (event: QueueEvent): Partial<JobHeader> =>
  (event.type === 'job.queued' && (event.header as JobHeader | undefined)) || {}
/** Returns the initial fields of a new job's record. */
function begunBy(event: QueueEvent & { readonly id: string }): Partial<InternalJob> {
  const { id } = event
  const { workers_only, environment } = headerOf(event)
  return { id, ...(workers_only && { workers_only: true }), ...(environment && { gated: true }) }
}

/** Adds the result in a run's `action.completed` event to the record of the job. */
export function applyResult(store: Store, { project }: RunRow, event: RunEvent): void {
  if (event.type !== 'action.completed') return
  const { job_id, result } = event.payload ?? {}
  if (
    typeof job_id !== 'string' ||
    typeof result !== 'object' ||
    result === null ||
    Array.isArray(result)
  )
    return
  const row = jobCache(store).edit(job_id)
  if (row?.project === project) row.record = amend(row.record, { result: result as JsonObject })
}

/** Returns a function that finds a stored job of the project by id. */
export const jobsById =
  (store: Store, project: number) =>
  (id: string): InternalJob | undefined => {
    const row = store.one<PackedJob>(
      `SELECT ${COLUMNS} FROM jobs WHERE id = ? AND project = ?`,
      id,
      project,
    )
    return row && recordOf(store, row)
  }

/**
 * Returns the jobs of a run, oldest first; on request, each with the reason why it waits. Jobs of a
 * session that the viewer may not read are omitted. Without a viewer, the caller is the service
 * itself.
 */
export function runJobs(
  store: Store,
  project: number,
  input: Paging & IncludeQuery & { readonly id: string; readonly viewer?: Viewer },
  watch: Watch,
): Page<Job> | Refusal {
  const run = runRow(store, project, input.id)
  if (!run) return missingRun
  const { viewer } = input
  const item = (row: PackedJob): Job => {
    const internal = recordOf(store, row)
    const { workers_only: _, gated: __, ...job } = internal
    const waiting_on = wantsAddition(input, 'waiting_on')
      ? waitingOfJob(internal, watch)
      : undefined
    return { ...job, ...(waiting_on && { waiting_on }) }
  }
  return readPage(
    store,
    {
      select: `SELECT ${COLUMNS} FROM jobs`,
      conditions: [
        ['run = ?', input.id],
        ['project = ?', project],
        ...(viewer ? [[notInUnreadableSession('jobs'), ...viewerValues(viewer)] as const] : []),
      ],
      order: ['created_at', 'id'],
      direction: 'ASC',
    },
    input,
    item,
  )
}

/** Returns the jobs whose leases a worker session holds. */
export const leases = (
  store: Store,
  project: number,
  session: string,
): ViewQueries['leases']['reply'] => ({
  items: store
    .all<PackedJob>(
      `SELECT ${COLUMNS} FROM jobs WHERE holder = ? AND project = ? ORDER BY created_at, id`,
      session,
      project,
    )
    .map((row) => {
      const { kind, session_id } = recordOf(store, row)
      return {
        job_id: row.id,
        queue: row.queue,
        ...(kind === 'llm_generation' && session_id !== undefined && { session_id }),
      }
    }),
})

/** Returns the jobs that a worker session holds and that a viewer may read, oldest first. */
export const jobsHeld = (
  store: Store,
  project: number,
  session: string,
  viewer: Viewer,
): WorkerJob[] =>
  store
    .all<PackedJob>(
      `SELECT ${COLUMNS} FROM jobs
       WHERE holder = ? AND project = ? AND ${notInUnreadableSession('jobs')}
       ORDER BY created_at, id LIMIT ?`,
      session,
      project,
      ...viewerValues(viewer),
      MAX_WORKER_JOBS,
    )
    .map((row) => {
      const job = recordOf(store, row)
      const { kind, action_name, model, run_id, step_key, session_id, claimed_at } = job
      return {
        job_id: row.id,
        queue: row.queue,
        kind,
        ...(action_name !== undefined && { action_name }),
        ...(model !== undefined && { model }),
        ...(run_id !== undefined && { run_id }),
        ...(step_key !== undefined && { step_key }),
        ...(session_id !== undefined && { session_id }),
        ...(claimed_at !== undefined && { claimed_at }),
      }
    })
