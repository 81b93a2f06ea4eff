/** The view of actions and their invocations. */
import type { OrganizationAction } from '../../../protocol/actions/organization-rows.ts'
import type { Action } from '../../../protocol/actions/rows.ts'
import { defineView } from '../../define-view.ts'
import { watchOf } from '../workers/workers.ts'
import { actionLog } from './actions.ts'
import { actionGet, actionList, actionsOf, applyActions, callable } from './definitions.ts'
import { invocationList } from './invocations.ts'

const tables = `
CREATE TABLE actions (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX actions_new ON actions (project, created_at, id);
CREATE INDEX actions_name ON actions (project, name);
CREATE TABLE invocations (
  cursor INTEGER PRIMARY KEY,
  project INTEGER NOT NULL,
  run TEXT,
  job TEXT NOT NULL,
  environment TEXT,
  action_name TEXT NOT NULL,
  action TEXT,
  scope TEXT,
  secret_version INTEGER,
  delivery TEXT,
  correlation TEXT,
  status TEXT NOT NULL,
  session TEXT,
  record TEXT NOT NULL
);
CREATE INDEX invocations_new ON invocations (project, cursor);
CREATE INDEX invocations_run ON invocations (run, cursor) WHERE run IS NOT NULL;
CREATE INDEX invocations_job ON invocations (job);
CREATE INDEX invocations_name ON invocations (project, action_name, cursor);
CREATE INDEX invocations_status ON invocations (project, status, cursor);
CREATE INDEX invocations_delivery ON invocations (delivery) WHERE delivery IS NOT NULL;
`

export const actions = defineView({
  kinds: { organization: applyActions, project: applyActions },
  tables,
  queries: {
    'run.action_log': ({ store, project }, input) => actionLog(store, project, input),
    'action.list': ({ store, project }, input) => actionList<Action>(store, project, input),
    'action.get': ({ store, project }, { action_name }) =>
      actionGet<Action>(store, project, 'name', action_name),
    'organization_action.list': ({ store, project }, input) =>
      actionList<OrganizationAction>(store, project, input),
    'organization_action.get': ({ store, project }, { action_id }) =>
      actionGet<OrganizationAction>(store, project, 'id', action_id),
    'invocation.list': ({ store, project }, input) => invocationList(store, project, input),
    callable: ({ store, project, now }, { name }) =>
      callable(store, project, watchOf(store, project, now), name),
    shared_actions: ({ store, project }, { name }) => ({
      items: actionsOf<OrganizationAction>(store, project, name),
    }),
  },
})
