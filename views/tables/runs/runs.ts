/**
 * The records of runs, folded from the patches of run events: one row for each run, with the
 * columns that lists filter by.
 */
import { createHash } from 'node:crypto'
import { parseTimestamp, timestamp } from '../../../protocol/common.ts'
import { lastCursor, type PlacedEntry } from '../../../protocol/entry.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import { isOfLoop, type RunRecord, shownRun } from '../../../protocol/loops/record.ts'
import { amend, begin } from '../../../protocol/patch.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { LoopRunDetail, WorkflowRunDetail } from '../../../protocol/runs/schema.ts'
import type { Spec } from '../../../protocol/workflows/spec.ts'
import { type IncludeQuery, wantsAddition } from '../../page.ts'
import type { Store } from '../../store.ts'
import { WriteBackCache } from '../../write-back.ts'
import { applyResult, jobsById } from '../jobs/jobs.ts'
import { addRunFlow } from '../overview/flow.ts'
import { feedRun } from './feed.ts'
import { fedRun, missingRun, type RunRow, runCache, runRow } from './run-row.ts'
import { applyStep, stepCounts, stepsOf } from './steps.ts'
import { applyTimeline } from './timeline.ts'
import { type Watch, waitingOfRun } from './waiting.ts'

/**
 * The text of a spec, which all runs of a workflow version share. A spec that was supplied with a
 * run is stored with that run instead.
 */
interface SpecRow {
  readonly project: number
  readonly hash: string
  readonly json: string
}

const specCache = (store: Store): WriteBackCache<SpecRow> =>
  store.cacheOf(
    'specs',
    () =>
      new WriteBackCache<SpecRow>(
        () => undefined,
        ({ project, hash, json }) =>
          store.run(
            'INSERT OR IGNORE INTO specs (project, hash, spec) VALUES (?, ?, ?)',
            project,
            hash,
            json,
          ),
      ),
  )

function storeSpec(store: Store, project: number, spec: Spec): string {
  const json = JSON.stringify(spec)
  const specs = specCache(store)
  const key = `${project}:${json}`
  const known = specs.get(key)
  if (known) return known.hash
  const hash = createHash('sha256').update(json).digest('base64url')
  specs.set(key, { project, hash, json })
  return hash
}

/**
 * Applies an entry of a run. If the first entry of a run was trimmed from the journal, its later
 * entries are ignored.
 */
export function applyRun(store: Store, place: PlacedEntry): void {
  const { entry, cursor } = place
  const { at } = entry.origin
  const runs = runCache(store)
  const known = entry.prev === 0 ? undefined : runs.edit(entry.id)
  let row = known?.project === store.numberOf(entry.project) ? known : undefined
  const isNew = row === undefined
  const events = entry.events as readonly RunEvent[]
  const begun = row ? 0 : events.findIndex(({ type }) => type === 'run.created')
  if (begun < 0) return
  for (let i = begun; i < events.length; i++) {
    const event = events[i] as RunEvent
    if (!row) runs.set(entry.id, (row = rowOf(store, place, event)))
    else row.record = amend(row.record, event.run)
    applyStep(store, row, event)
    applyResult(store, row, event)
    feedRun(store, row, event, cursor + i, at)
  }
  if (!row || events.length === 0) return
  addRunFlow(store, row, isNew, events, at)
  store.tail.weigh(applyTimeline(store, row, events.slice(begun), cursor + begun, at))
  row.last = lastCursor(place)
}

function rowOf(store: Store, { entry }: PlacedEntry, event: RunEvent): RunRow {
  const record = begin<RunRecord>({ id: entry.id }, event.run)
  const project = store.numberOf(entry.project)
  const { at } = entry.origin
  const { created_at: created = '' } = record
  const created_at = created === timestamp(at) ? at : (parseTimestamp(created) ?? at)
  const spec =
    event.spec &&
    (record.definition_id ? storeSpec(store, project, event.spec) : JSON.stringify(event.spec))
  const n = store.nextRun()
  return {
    n,
    fed: fedRun(n, record),
    project,
    created_at,
    spec: spec ?? null,
    record,
    last: 0,
    stored: undefined,
  }
}

/** Returns the spec that a run executes; a spec without steps if the view does not have it. */
function specOf(store: Store, { project, spec }: RunRow): Spec {
  const json = spec?.startsWith('{')
    ? spec
    : spec === null
      ? undefined
      : store.one<{ spec: string }>(
          'SELECT spec FROM specs WHERE project = ? AND hash = ?',
          project,
          spec,
        )?.spec
  return (json ? JSON.parse(json) : { steps: [] }) as Spec
}

/**
 * Returns a run; on request, with the reason why it waits. For a run that does not belong to a
 * loop, the result also contains the spec, the step counts, and `paths`. Such a run has exactly one
 * path, which states the reason even if it was not requested. Returns `not_found` if the project
 * has no such run.
 */
export function runDetail(
  store: Store,
  project: number,
  input: IncludeQuery & { readonly id: string },
  watch: Watch,
): WorkflowRunDetail | LoopRunDetail | Refusal {
  const row = runRow(store, project, input.id)
  if (!row) return missingRun
  const { record } = row
  const asked = wantsAddition(input, 'waiting_on')
  const ofLoop = isOfLoop(record) && {
    ...(shownRun(record) as LoopRunDetail),
    ...(wantsAddition(input, 'spec') && { spec: specOf(store, row) }),
  }
  if (ofLoop && !asked) return ofLoop
  const steps = stepsOf(store, row)
  const waiting_on = waitingOfRun(record, steps, jobsById(store, project), watch)
  const added = { ...(asked && waiting_on && { waiting_on }) }
  if (ofLoop) return { ...ofLoop, ...added }
  const is = (...statuses: string[]) => (statuses.includes(record.status) ? 1 : 0)
  return {
    ...(shownRun(record) as WorkflowRunDetail),
    spec: specOf(store, row),
    step_counts: stepCounts(steps),
    path_counts: {
      total: 1,
      working: is('queued', 'running'),
      waiting: is('suspended'),
      completed: is('completed'),
      failed: is('failed'),
    },
    paths: [
      {
        path_id: 'main',
        state: record.status,
        ...(record.error_message !== undefined && { error_message: record.error_message }),
        ...(waiting_on && { waiting_on: { kind: waiting_on.kind, reason: waiting_on.reason } }),
      },
    ],
    ...added,
  }
}

/**
 * Returns an object with the id of the project's run that was started under an idempotency key. The
 * object is empty if no such run exists. `stem` is the part of the id that is derived from the key.
 */
export const runOfKey = (store: Store, project: number, stem: string): { id?: string } =>
  store.one<{ id: string }>(
    'SELECT id FROM runs WHERE id >= ? AND id < ? AND project = ? LIMIT 1',
    stem,
    `${stem}~`,
    project,
  ) ?? {}

/**
 * Finds the project of a run among all projects of the partition. Returns an empty object if the
 * partition has no such run.
 */
export function locateRun(store: Store, id: string): { project?: string } {
  const row = store.one<{ project: string }>(
    'SELECT projects.id AS project FROM runs JOIN projects ON projects.n = runs.project WHERE runs.id = ?',
    id,
  )
  return row ? { project: row.project } : {}
}
