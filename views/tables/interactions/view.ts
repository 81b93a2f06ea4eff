/** The view of interactions. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyInteraction, interactionGet, interactionList } from './interactions.ts'

const tables = `
CREATE TABLE interactions (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  kind TEXT NOT NULL,
  run TEXT,
  session TEXT,
  record TEXT NOT NULL
);
CREATE INDEX interactions_new ON interactions (project, created_at, id);
CREATE INDEX interactions_status ON interactions (project, status, created_at, id);
CREATE INDEX interactions_run ON interactions (project, run, created_at, id) WHERE run IS NOT NULL;
CREATE INDEX interactions_session ON interactions (project, session, created_at, id)
  WHERE session IS NOT NULL;
CREATE TABLE interaction_people (
  project INTEGER NOT NULL,
  person TEXT NOT NULL,
  part TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  PRIMARY KEY (project, person, part, created_at, id)
) WITHOUT ROWID;
`

export const interactions = defineView({
  kinds: { interaction: [applyAudit, applyInteraction] },
  gathers: ['interaction'],
  tables,
  queries: {
    'interaction.list': ({ store, project }, input) => interactionList(store, project, input),
    'interaction.get': ({ store, project }, input) => interactionGet(store, project, input),
  },
})
