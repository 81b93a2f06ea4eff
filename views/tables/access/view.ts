/** The view of the audit log. */
import { defineView } from '../../define-view.ts'
import { applyAudit, auditList } from './audit.ts'

const tables = `
CREATE TABLE audit (
  id TEXT PRIMARY KEY,
  project TEXT,
  resource_type TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  action TEXT NOT NULL,
  actor_type TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  user_id TEXT,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX audit_new ON audit (created_at, id);
CREATE INDEX audit_project ON audit (project, created_at, id);
CREATE INDEX audit_resource ON audit (resource_id, created_at, id);
CREATE INDEX audit_actor ON audit (actor_id, created_at, id);
`

export const access = defineView({
  kinds: { organization: applyAudit, project: applyAudit, saved_views: applyAudit },
  gathers: ['organization', 'project', 'saved_views'],
  tables,
  queries: {
    'audit.list': ({ store, organization }, input) => auditList(store, input, organization),
  },
})
