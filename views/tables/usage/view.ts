/** The view of usage events. */
import { defineView } from '../../define-view.ts'
import { applyRunUsage, applySessionUsage, usageList } from './usage.ts'

const tables = `
CREATE TABLE usage_events (
  id TEXT NOT NULL,
  project TEXT NOT NULL,
  recorded_at INTEGER NOT NULL,
  period_start TEXT NOT NULL,
  counter TEXT NOT NULL,
  source_type TEXT NOT NULL,
  source_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  api_key_id TEXT NOT NULL,
  quantity INTEGER NOT NULL,
  milli INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX usage_new ON usage_events (recorded_at, id);
CREATE INDEX usage_project ON usage_events (project, recorded_at, id);
CREATE INDEX usage_run ON usage_events (run_id) WHERE run_id <> '';
`

export const usage = defineView({
  kinds: { run: applyRunUsage, session: applySessionUsage },
  gathers: ['run', 'session'],
  tables,
  queries: {
    'usage.list': ({ store }, input) => usageList(store, input),
  },
})
