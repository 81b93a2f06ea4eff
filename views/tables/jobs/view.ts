/** The view of jobs. */
import { defineView } from '../../define-view.ts'
import { watch } from '../workers/workers.ts'
import { applyQueue, leases, runJobs } from './jobs.ts'

const tables = `
CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  run TEXT,
  step TEXT,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  queue TEXT NOT NULL,
  holder TEXT,
  session TEXT,
  record TEXT NOT NULL
);
CREATE INDEX jobs_run ON jobs (run, created_at, id) WHERE run IS NOT NULL;
CREATE INDEX jobs_holder ON jobs (holder) WHERE holder IS NOT NULL;
`

export const jobs = defineView({
  kinds: { queue: applyQueue },
  gathers: ['queue'],
  tables,
  queries: {
    'run.jobs': ({ store, project, now }, input) =>
      runJobs(store, project, input, watch(store, project, now)),
    leases: ({ store, project }, { session }) => leases(store, project, session),
  },
})
