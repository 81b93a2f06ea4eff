/** The view of loops. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyLoop, loopGet, loopList, loopNamed } from './loops.ts'

const tables = `
CREATE TABLE loops (
  id TEXT PRIMARY KEY,
  project INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  agent TEXT,
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX loops_new ON loops (project, created_at, id);
CREATE INDEX loops_name ON loops (project, name);
`

export const loops = defineView({
  kinds: { loop: [applyAudit, applyLoop] },
  gathers: ['loop'],
  tables,
  queries: {
    'loop.list': ({ store, project }, input) => loopList(store, project, input),
    'loop.get': ({ store, project }, input) => loopGet(store, project, input),
    loop_named: ({ store, project }, { name }) => loopNamed(store, project, name),
  },
})
