/** The view of workflow definitions and their versions. */
import { defineView } from '../../define-view.ts'
import { applyWorkflows, workflowGet, workflowList, workflowVersions } from './workflows.ts'

const tables = `
CREATE TABLE workflows (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  handle TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX workflows_new ON workflows (project, created_at, id);
CREATE INDEX workflows_handle ON workflows (project, handle);
CREATE TABLE versions (
  definition TEXT NOT NULL,
  version INTEGER NOT NULL,
  project INTEGER NOT NULL,
  record TEXT NOT NULL,
  spec TEXT NOT NULL,
  PRIMARY KEY (definition, version)
);
`

export const workflows = defineView({
  kinds: { project: applyWorkflows },
  tables,
  queries: {
    'workflow.list': ({ store, project }, input) => workflowList(store, project, input),
    'workflow.get': ({ store, project }, input) => workflowGet(store, project, input),
    'workflow.versions': ({ store, project }, input) => workflowVersions(store, project, input),
  },
})
