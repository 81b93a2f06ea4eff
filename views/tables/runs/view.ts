/** The view of runs: their records, steps, timelines and the feed of a project. */
import type { Refusal } from '../../../protocol/errors.ts'
import type { RunStep } from '../../../protocol/runs/schema.ts'
import { defineView, type QueryContext } from '../../define-view.ts'
import { type IncludeQuery, type Paging, wantsAddition } from '../../page.ts'
import { jobsById } from '../jobs/jobs.ts'
import { watchOf } from '../workers/workers.ts'
import { feed } from './feed.ts'
import { runCount, runList, workflowRuns } from './list.ts'
import { missingRun, runRow } from './run-row.ts'
import { applyRun, locateRun, runDetail, runOfKey } from './runs.ts'
import { stepsOf } from './steps.ts'
import { eventPage, timeline } from './timeline.ts'
import { waitingOfStep } from './waiting.ts'

function runSteps(
  { store, project, now }: QueryContext,
  input: Paging & IncludeQuery & { readonly id: string },
): { items: RunStep[] } | Refusal {
  const run = runRow(store, project, input.id)
  if (!run) return missingRun
  if (!wantsAddition(input, 'waiting_on')) return { items: stepsOf(store, run) }
  const watching = watchOf(store, project, now)
  const jobs = jobsById(store, project)
  return {
    items: stepsOf(store, run).map((step) => {
      const waiting_on = waitingOfStep(step, jobs, watching)
      // A run may have thousands of steps, most of which have ended and need no copy.
      return waiting_on === step.waiting_on ? step : { ...step, ...(waiting_on && { waiting_on }) }
    }),
  }
}

// Lists of runs are newest first. `runs_status`, `runs_queue` and `runs_type` are read once for
// each status, and the results are merged. Every combination of a status with a queue or a type is
// a range of one index.
const tables = `
CREATE TABLE runs (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  project INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  ended_at INTEGER,
  queue TEXT NOT NULL,
  workflow_type TEXT,
  parent TEXT,
  initiated_by TEXT,
  external_id TEXT,
  definition_id TEXT,
  loop TEXT,
  source_event TEXT,
  spec TEXT,
  last INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX runs_new ON runs (project, created_at, id);
CREATE INDEX runs_status ON runs (project, status, created_at, id);
CREATE INDEX runs_ended ON runs (project, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_queue ON runs (project, queue, status, created_at, id);
CREATE INDEX runs_type ON runs (project, workflow_type, status, created_at, id)
  WHERE workflow_type IS NOT NULL;
CREATE INDEX runs_parent ON runs (project, parent, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX runs_initiator ON runs (project, initiated_by, created_at, id)
  WHERE initiated_by IS NOT NULL;
CREATE INDEX runs_external ON runs (project, external_id, created_at, id)
  WHERE external_id IS NOT NULL;
CREATE INDEX runs_definition ON runs (project, definition_id, created_at, id)
  WHERE definition_id IS NOT NULL;
CREATE INDEX runs_loop ON runs (project, loop, created_at, id) WHERE loop IS NOT NULL;
CREATE INDEX runs_source ON runs (project, source_event, created_at, id)
  WHERE source_event IS NOT NULL;
CREATE TABLE specs (
  project INTEGER NOT NULL,
  hash TEXT NOT NULL,
  spec TEXT NOT NULL,
  PRIMARY KEY (project, hash)
) WITHOUT ROWID;
CREATE TABLE steps (
  run INTEGER NOT NULL, step TEXT NOT NULL, project INTEGER NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (run, step)
) WITHOUT ROWID;
CREATE TABLE timeline (
  cursor INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  project INTEGER NOT NULL,
  actions INTEGER NOT NULL,
  at INTEGER NOT NULL,
  events TEXT NOT NULL
);
CREATE INDEX timeline_run ON timeline (run, cursor);
CREATE TABLE feed (seq INTEGER PRIMARY KEY, project INTEGER NOT NULL, frames TEXT NOT NULL);
CREATE INDEX feed_project ON feed (project, seq);
`

export const runs = defineView({
  kinds: { run: applyRun },
  gathers: ['run'],
  tables,
  queries: {
    'run.list': ({ store, project, now }, input) => runList(store, project, now, input),
    'run.count': ({ store, project, now }, input) => runCount(store, project, now, input),
    'run.get': ({ store, project, now }, input) =>
      runDetail(store, project, input, watchOf(store, project, now)),
    'run.steps': runSteps,
    'run.events': ({ store, project }, input) => eventPage(store, project, input),
    'workflow.runs': ({ store, project }, input) => workflowRuns(store, project, input),
    timeline: ({ store, project, oldest, current }, input) => ({
      ...timeline(store, project, input, oldest),
      current,
    }),
    feed: ({ store, project, current, oldest }, input) =>
      feed(store, project, input, current, oldest),
    locate: ({ store }, { run_id }) => locateRun(store, run_id),
    run_of_key: ({ store, project }, { stem }) => runOfKey(store, project, stem),
  },
})
