/** The view of artifacts. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyArtifact, artifactIds, artifactList } from './artifacts.ts'

const tables = `
CREATE TABLE artifacts (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  run TEXT,
  step TEXT,
  session TEXT,
  mime TEXT NOT NULL,
  shared INTEGER NOT NULL,
  owner TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX artifacts_new ON artifacts (project, created_at, id);
CREATE INDEX artifacts_id ON artifacts (project, id);
CREATE INDEX artifacts_run ON artifacts (project, run, created_at, id) WHERE run IS NOT NULL;
`

export const artifacts = defineView({
  kinds: { artifact: [applyAudit, applyArtifact] },
  tables,
  queries: {
    artifact_ids: ({ store, project }, input) => artifactIds(store, project, input),
    'artifact.list': ({ store, project }, input) => artifactList(store, project, input),
  },
})
