/** The view of the memory of agents. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyMemory, memoryChanges, memoryEntries, memoryGet } from './memory.ts'

const tables = `
CREATE TABLE memory (
  project INTEGER NOT NULL,
  agent TEXT NOT NULL,
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  pinned INTEGER NOT NULL,
  importance INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  words TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (project, agent, key)
);
CREATE INDEX memory_first ON memory (project, agent, pinned, importance, updated_at, key);
CREATE TABLE memory_changes (
  project INTEGER NOT NULL,
  agent TEXT NOT NULL,
  cursor INTEGER NOT NULL,
  at INTEGER NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (project, agent, cursor)
) WITHOUT ROWID;
`

export const memory = defineView({
  kinds: { memory: [applyAudit, applyMemory] },
  tables,
  queries: {
    'memory.get': ({ store, project }, input) => memoryGet(store, project, input),
    'memory.entries': ({ store, project }, input) => memoryEntries(store, project, input),
    memory_changes: ({ store, project, now }, input) => memoryChanges(store, project, input, now),
  },
})
