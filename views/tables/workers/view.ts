/** The view of workers. */
import { defineView } from '../../define-view.ts'
import { applyWorker, watchOf, workerList, workerModels } from './workers.ts'

const tables = `
CREATE TABLE workers (
  id TEXT NOT NULL,
  project INTEGER NOT NULL,
  session TEXT NOT NULL,
  connected INTEGER NOT NULL,
  draining INTEGER NOT NULL,
  gone_at INTEGER,
  last_seen INTEGER NOT NULL,
  registration TEXT NOT NULL,
  PRIMARY KEY (project, id)
);
`

export const workers = defineView({
  kinds: { worker: applyWorker },
  tables,
  queries: {
    'catalog.worker_models': ({ store, project, now }) =>
      workerModels(watchOf(store, project, now)),
    'worker.list': ({ store, project, now, stale }, input) =>
      workerList(store, project, now, stale, input),
  },
})
