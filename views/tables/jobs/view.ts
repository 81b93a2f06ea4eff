/** The view of jobs. */
import { defineView } from '../../define-view.ts'
import { connectedWorkers, watchOf } from '../workers/workers.ts'
import { applyQueue, leases, runJobs } from './jobs.ts'
import { queueList } from './queues.ts'

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
  line TEXT,
  record TEXT NOT NULL
);
CREATE INDEX jobs_run ON jobs (run, created_at, id) WHERE run IS NOT NULL;
CREATE INDEX jobs_holder ON jobs (holder) WHERE holder IS NOT NULL;
CREATE INDEX jobs_waiting ON jobs (project, queue, line, created_at) WHERE line IS NOT NULL;
CREATE TABLE queue_lines (
  project INTEGER NOT NULL,
  queue TEXT NOT NULL,
  line TEXT NOT NULL,
  waiting INTEGER NOT NULL,
  in_work INTEGER NOT NULL,
  PRIMARY KEY (project, queue, line)
) WITHOUT ROWID;
`

export const jobs = defineView({
  kinds: { queue: applyQueue },
  gathers: ['queue'],
  tables,
  queries: {
    'run.jobs': ({ store, project, now }, input) =>
      runJobs(store, project, input, watchOf(store, project, now)),
    'queue.list': ({ store, project }) =>
      queueList(store, project, connectedWorkers(store, project)),
    leases: ({ store, project }, { session }) => leases(store, project, session),
  },
})
