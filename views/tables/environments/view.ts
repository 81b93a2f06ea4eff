/** The view of environments. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyEnvironment, environmentIds, environmentList } from './environments.ts'

const tables = `
CREATE TABLE environments (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  run TEXT,
  destroyed_at INTEGER,
  record TEXT NOT NULL
);
CREATE INDEX environments_new ON environments (project, created_at, id);
CREATE INDEX environments_id ON environments (project, id);
CREATE INDEX environments_run ON environments (project, run, created_at, id) WHERE run IS NOT NULL;
`

export const environments = defineView({
  kinds: { environment: [applyAudit, applyEnvironment] },
  tables,
  queries: {
    environment_ids: ({ store, project }, input) => environmentIds(store, project, input),
    'environment.list': ({ store, project }, input) => environmentList(store, project, input),
  },
})
