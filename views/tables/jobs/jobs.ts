/**
 * Jobs: the folded patches of queue events. The result of a job is part of the queue event that
 * ends the job. For an action of a run, it is also part of the run's `action.completed` event.
 */

import type { Viewer } from '../../../protocol/channels/schema.ts'
import { type JsonObject, parseTimestamp, timestamp } from '../../../protocol/common.ts'
import type { Event, Placed } from '../../../protocol/entry.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import { isUnlisted, type Job, type QueueEvent } from '../../../protocol/jobs/rows.ts'
import { type Patch, patch } from '../../../protocol/patch.ts'
import type { ViewQueries } from '../../../protocol/queries/views.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { beyond, type Including, limitOf, type Page, type Paging, page, wants } from '../../page.ts'
import { Kept, type Store } from '../../store.ts'
import { addInvocation } from '../actions/invocations.ts'
import { feedJob } from '../runs/feed.ts'
import { missingRun, type RunRow, runRow } from '../runs/run-row.ts'
import { type KeptJob, type Watch, waitingOfJob } from '../runs/waiting.ts'
import { recordOpenTo, viewerValues } from '../sessions/visibility.ts'

interface JobRow {
  readonly project: number
  readonly record: KeptJob
  /** Id of the worker session that holds the lease; null if there is no lease. */
  readonly session: string | null
  stored: boolean
}

function save(store: Store, row: JobRow, id: string): void {
  const { record, session, project } = row
  const json = JSON.stringify(record)
  if (row.stored)
    store.run(
      'UPDATE jobs SET status = ?, session = ?, record = ? WHERE id = ?',
      record.status,
      session,
      json,
      id,
    )
  else
    store.run(
      `INSERT OR REPLACE INTO jobs (id, project, run, created_at, status, queue, session, record)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      id,
      project,
      record.run_id ?? null,
      parseTimestamp(record.created_at) ?? 0,
      record.status,
      record.queue,
      session,
      json,
    )
  row.stored = true
}
const kept = (store: Store): Kept<JobRow> =>
  store.kept(
    'jobs',
    () =>
      new Kept(
        (id): JobRow | undefined => {
          const row = store.one<{ project: number; record: string; session: string | null }>(
            'SELECT project, record, session FROM jobs WHERE id = ?',
            id,
          )
          return row && { ...row, record: JSON.parse(row.record) as KeptJob, stored: true }
        },
        (row, id) => save(store, row, id),
      ),
  )

/**
 * Applies an entry of a queue. Events of a job whose first event was trimmed from the journal are
 * ignored.
 */
export function applyQueue(store: Store, place: Placed): void {
  const jobs = kept(store)
  const project = store.numberOf(place.entry.project)
  place.entry.events.forEach((any: Event, i) => {
    const event = any as QueueEvent
    if (event.type !== 'lease.renewed' && !event.type.startsWith('job.')) return
    if (event.type === 'job.queued' && isUnlisted(event.header.kind)) return
    const row = jobs.get(event.id, event.type === 'job.queued')
    if (row ? row.project !== project : event.type !== 'job.queued') return
    const change: Patch<Job> | undefined =
      event.type === 'lease.renewed' ? { lease_expires_at: timestamp(event.expires_at) } : event.job
    if (!change) return
    const begun: KeptJob =
      row?.record ??
      ({
        id: event.id,
        ...(event.type === 'job.queued' && event.header.workers_only && { workers_only: true }),
        ...(event.type === 'job.queued' && event.header.environment && { gated: true }),
      } as KeptJob)
    const { gated, ...rest }: KeptJob = patch(begun, change)
    const record: KeptJob = {
      ...rest,
      ...(gated && event.type !== 'job.admitted' && rest.status === 'queued' && { gated }),
    }
    const session =
      event.type === 'job.claimed'
        ? event.lease.session
        : record.status === 'claimed'
          ? (row?.session ?? null)
          : null
    jobs.set(event.id, { project, record, session, stored: row?.stored ?? false })
    if (change.status) feedJob(store, place, place.cursor + i, record)
    if (
      event.type === 'job.completed' ||
      event.type === 'job.failed' ||
      event.type === 'job.cancelled'
    )
      addInvocation(store, project, place.cursor + i, record, event)
  })
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
  const jobs = kept(store)
  const row = jobs.get(job_id)
  if (row?.project === project)
    jobs.set(job_id, { ...row, record: { ...row.record, result: result as JsonObject } })
}

/** Returns a function that finds a stored job of the project by id. */
export const jobsById =
  (store: Store, project: number) =>
  (id: string): KeptJob | undefined => {
    const row = store.one<{ record: string }>(
      'SELECT record FROM jobs WHERE id = ? AND project = ?',
      id,
      project,
    )
    return row && (JSON.parse(row.record) as KeptJob)
  }

/**
 * Returns the jobs of a run, oldest first; on request, each with the reason why it waits. Jobs of a
 * session that the viewer may not read are left out; without a viewer, the caller is the service
 * itself.
 */
export function runJobs(
  store: Store,
  project: number,
  input: Paging & Including & { readonly id: string; readonly viewer?: Viewer },
  watch: Watch,
): Page<Job> | Refusal {
  const run = runRow(store, project, input.id)
  if (!run) return missingRun
  const { viewer } = input
  const after = beyond(['created_at', 'id'], 'ASC', input.after)
  const rows = store.upToPage<{ id: string; created_at: number; record: string }>(
    `SELECT id, created_at, record
     FROM jobs
     WHERE run = ? AND project = ?${viewer ? ` AND ${recordOpenTo('jobs')}` : ''}${after.sql}
     ORDER BY created_at, id LIMIT ?`,
    input.id,
    project,
    ...(viewer ? viewerValues(viewer) : []),
    ...after.values,
    limitOf(input) + 1,
  )
  const item = (row: { record: string }): Job => {
    const kept = JSON.parse(row.record) as KeptJob
    const { workers_only: _, gated: __, ...job } = kept
    const waiting_on = wants(input, 'waiting_on') ? waitingOfJob(kept, watch) : undefined
    return { ...job, ...(waiting_on && { waiting_on }) }
  }
  return page(rows, input, item, (row) => [row.created_at, row.id])
}

/** Returns the jobs whose leases a worker session holds. */
export const leases = (
  store: Store,
  project: number,
  session: string,
): ViewQueries['leases']['reply'] => ({
  items: store
    .all<{ job_id: string; queue: string; record: string }>(
      'SELECT id AS job_id, queue, record FROM jobs WHERE session = ? AND project = ? ORDER BY created_at, id',
      session,
      project,
    )
    .map(({ record, ...lease }) => {
      const { kind, session_id } = JSON.parse(record) as Job
      return {
        ...lease,
        ...(kind === 'llm_generation' && session_id !== undefined && { session_id }),
      }
    }),
})
