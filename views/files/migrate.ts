/**
 * The schema of a view's file. There are no migrations: a view is derived, so a file of another
 * version is deleted and rebuilt from the journal.
 *
 * Every row carries its project or belongs to a row that does, and every query of one project
 * filters by it. Projects and runs have short numbers that are local to the file and keep keys
 * small; clients never see them. Times are Unix milliseconds; `record` is JSON as clients see it. A
 * row of the timeline holds all events of one entry, see `TimelineRow`; a row of the feed holds
 * many frames and the cursor of the last of them.
 */
import type { Database } from 'better-sqlite3'

/** Must be incremented with every change of the schema or of the data derived into it. */
export const SCHEMA_VERSION = 18

// A row that is larger than a quarter of a page does not fit into a table WITHOUT ROWID: each would
// have a page of its own, as the rows of the timeline had (https://www.sqlite.org/fileformat2.html,
// payload overflow). So those tables hold small rows.
//
// Run lists are newest first. `runs_status`, `runs_queue` and `runs_type` are read once for each
// status and merged, so that every combination of a status with a queue or a type is a range of one
// index.
const schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE projects (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);

CREATE TABLE runs (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL, created_at INTEGER NOT NULL, status TEXT NOT NULL, queue TEXT NOT NULL,
  workflow_type TEXT, parent TEXT, initiated_by TEXT, external_id TEXT, definition_id TEXT, loop TEXT, source_event TEXT,
  spec TEXT, last INTEGER NOT NULL, record TEXT NOT NULL
);
CREATE INDEX runs_new ON runs (project, created_at, id);
CREATE INDEX runs_status ON runs (project, status, created_at, id);
CREATE INDEX runs_queue ON runs (project, queue, status, created_at, id);
CREATE INDEX runs_type ON runs (project, workflow_type, status, created_at, id) WHERE workflow_type IS NOT NULL;
CREATE INDEX runs_parent ON runs (project, parent, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX runs_initiator ON runs (project, initiated_by, created_at, id) WHERE initiated_by IS NOT NULL;
CREATE INDEX runs_external ON runs (project, external_id, created_at, id) WHERE external_id IS NOT NULL;
CREATE INDEX runs_definition ON runs (project, definition_id, created_at, id) WHERE definition_id IS NOT NULL;
CREATE INDEX runs_loop ON runs (project, loop, created_at, id) WHERE loop IS NOT NULL;
CREATE INDEX runs_source ON runs (project, source_event, created_at, id) WHERE source_event IS NOT NULL;
CREATE TABLE specs (project INTEGER NOT NULL, hash TEXT NOT NULL, spec TEXT NOT NULL, PRIMARY KEY (project, hash)) WITHOUT ROWID;

CREATE TABLE steps (
  run INTEGER NOT NULL, step TEXT NOT NULL, project INTEGER NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (run, step)
) WITHOUT ROWID;

CREATE TABLE timeline (
  cursor INTEGER PRIMARY KEY, run INTEGER NOT NULL, project INTEGER NOT NULL, actions INTEGER NOT NULL, at INTEGER NOT NULL, events TEXT NOT NULL
);
CREATE INDEX timeline_run ON timeline (run, cursor);

CREATE TABLE feed (
  project INTEGER NOT NULL, seq INTEGER NOT NULL, frames TEXT NOT NULL,
  PRIMARY KEY (project, seq)
) WITHOUT ROWID;

CREATE TABLE jobs (
  id TEXT PRIMARY KEY, project INTEGER NOT NULL, run TEXT, created_at INTEGER NOT NULL, status TEXT NOT NULL, queue TEXT NOT NULL,
  session TEXT, record TEXT NOT NULL
);
CREATE INDEX jobs_run ON jobs (run, created_at, id) WHERE run IS NOT NULL;
CREATE INDEX jobs_session ON jobs (session) WHERE session IS NOT NULL;

CREATE TABLE workers (
  id TEXT NOT NULL, project INTEGER NOT NULL, session TEXT NOT NULL, connected INTEGER NOT NULL, draining INTEGER NOT NULL,
  gone_at INTEGER, last_seen INTEGER NOT NULL, registration TEXT NOT NULL,
  PRIMARY KEY (project, id)
);

CREATE TABLE workflows (id TEXT PRIMARY KEY, project INTEGER NOT NULL, handle TEXT NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX workflows_new ON workflows (project, created_at, id);
CREATE INDEX workflows_handle ON workflows (project, handle);
CREATE TABLE versions (
  definition TEXT NOT NULL, version INTEGER NOT NULL, project INTEGER NOT NULL, record TEXT NOT NULL, spec TEXT NOT NULL,
  PRIMARY KEY (definition, version)
);

CREATE TABLE actions (id TEXT PRIMARY KEY, project INTEGER NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX actions_new ON actions (project, created_at, id);
CREATE INDEX actions_name ON actions (project, name);
CREATE TABLE invocations (
  cursor INTEGER PRIMARY KEY, project INTEGER NOT NULL, run TEXT, job TEXT NOT NULL, environment TEXT, action_name TEXT NOT NULL, action TEXT, scope TEXT,
  secret_version INTEGER, delivery TEXT, correlation TEXT, status TEXT NOT NULL, record TEXT NOT NULL
);
CREATE INDEX invocations_new ON invocations (project, cursor);
CREATE INDEX invocations_run ON invocations (run, cursor) WHERE run IS NOT NULL;
CREATE INDEX invocations_job ON invocations (job);
CREATE INDEX invocations_name ON invocations (project, action_name, cursor);
CREATE INDEX invocations_status ON invocations (project, status, cursor);
CREATE INDEX invocations_delivery ON invocations (delivery) WHERE delivery IS NOT NULL;

CREATE TABLE interactions (
  id TEXT PRIMARY KEY, project INTEGER NOT NULL, created_at INTEGER NOT NULL, status TEXT NOT NULL, kind TEXT NOT NULL, run TEXT, session TEXT, record TEXT NOT NULL
);
CREATE INDEX interactions_new ON interactions (project, created_at, id);
CREATE INDEX interactions_status ON interactions (project, status, created_at, id);
CREATE INDEX interactions_run ON interactions (project, run, created_at, id) WHERE run IS NOT NULL;
CREATE INDEX interactions_session ON interactions (project, session, created_at, id) WHERE session IS NOT NULL;
CREATE TABLE interaction_people (
  project INTEGER NOT NULL, person TEXT NOT NULL, part TEXT NOT NULL, created_at INTEGER NOT NULL, id TEXT NOT NULL,
  PRIMARY KEY (project, person, part, created_at, id)
) WITHOUT ROWID;
CREATE TABLE channels (
  n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL, kind TEXT NOT NULL, private INTEGER NOT NULL, created_at INTEGER NOT NULL,
  members INTEGER NOT NULL, message_seq INTEGER NOT NULL, last_message_at TEXT, last INTEGER NOT NULL, mixed INTEGER NOT NULL DEFAULT 0, record TEXT NOT NULL
);
CREATE INDEX channels_mixed ON channels (project) WHERE mixed = 1;
CREATE INDEX channels_open ON channels (project, created_at, id) WHERE private = 0;
CREATE INDEX channels_kind ON channels (project, kind, created_at, id);
CREATE TABLE channel_members (
  channel INTEGER NOT NULL, member TEXT NOT NULL, project INTEGER NOT NULL, channel_id TEXT NOT NULL, born INTEGER NOT NULL, joined_at INTEGER NOT NULL,
  last_read INTEGER NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (channel, member)
);
CREATE INDEX members_joined ON channel_members (channel, joined_at, member);
CREATE INDEX members_mine ON channel_members (project, member, born, channel_id);
CREATE TABLE channel_events (
  channel INTEGER NOT NULL, cursor INTEGER NOT NULL, at INTEGER NOT NULL, type TEXT NOT NULL, message INTEGER, payload TEXT,
  PRIMARY KEY (channel, cursor)
) WITHOUT ROWID;
CREATE TABLE channel_exchanges (
  cursor INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, channel INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, record TEXT NOT NULL
);
CREATE INDEX channel_exchanges_new ON channel_exchanges (channel, cursor);
CREATE TABLE messages (
  cursor INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, channel INTEGER NOT NULL, sender TEXT NOT NULL, root TEXT, pinned INTEGER NOT NULL, replies INTEGER NOT NULL, record TEXT NOT NULL
);
CREATE INDEX messages_channel ON messages (channel, cursor);
CREATE INDEX messages_sender ON messages (channel, sender, cursor);
CREATE INDEX messages_thread ON messages (channel, root, cursor) WHERE root IS NOT NULL;
CREATE INDEX messages_pinned ON messages (channel, cursor) WHERE pinned = 1;
CREATE VIRTUAL TABLE message_words USING fts5 (content, place, content = '', contentless_delete = 1);
CREATE TABLE dropped (channel INTEGER PRIMARY KEY);
CREATE TABLE thread_agents (channel INTEGER NOT NULL, root TEXT NOT NULL, agent TEXT NOT NULL, PRIMARY KEY (channel, root, agent)) WITHOUT ROWID;

CREATE TABLE loops (id TEXT PRIMARY KEY, project INTEGER NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, agent TEXT, created_at INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX loops_new ON loops (project, created_at, id);
CREATE INDEX loops_name ON loops (project, name);

CREATE TABLE source_events (
  cursor INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL, event_type TEXT NOT NULL, source_kind TEXT NOT NULL, source_id TEXT NOT NULL,
  dedup TEXT, session TEXT, record TEXT NOT NULL
);
CREATE INDEX source_events_dedup ON source_events (project, dedup, cursor) WHERE dedup IS NOT NULL;
CREATE INDEX source_events_new ON source_events (project, cursor);
CREATE INDEX source_events_type ON source_events (project, event_type, cursor);
CREATE INDEX source_events_source ON source_events (project, source_id, cursor);

CREATE TABLE webhooks (id TEXT PRIMARY KEY, project INTEGER NOT NULL, enabled INTEGER NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX webhooks_new ON webhooks (project, created_at, id);
CREATE TABLE deliveries (id TEXT PRIMARY KEY, project INTEGER NOT NULL, webhook TEXT NOT NULL, session TEXT, created_at INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX deliveries_new ON deliveries (webhook, created_at, id);

CREATE TABLE audit (
  id TEXT PRIMARY KEY, project TEXT, resource_type TEXT NOT NULL, resource_id TEXT NOT NULL, action TEXT NOT NULL,
  actor_type TEXT NOT NULL, actor_id TEXT NOT NULL, user_id TEXT, created_at INTEGER NOT NULL, record TEXT NOT NULL
);
CREATE INDEX audit_new ON audit (created_at, id);
CREATE INDEX audit_project ON audit (project, created_at, id);
CREATE INDEX audit_resource ON audit (resource_id, created_at, id);
CREATE INDEX audit_actor ON audit (actor_id, created_at, id);

CREATE TABLE usage_events (
  id TEXT NOT NULL, project TEXT NOT NULL, recorded_at INTEGER NOT NULL, period_start TEXT NOT NULL, counter TEXT NOT NULL, source_type TEXT NOT NULL,
  source_id TEXT NOT NULL, run_id TEXT NOT NULL, job_id TEXT NOT NULL, api_key_id TEXT NOT NULL, quantity INTEGER NOT NULL, milli INTEGER NOT NULL, record TEXT NOT NULL
);
CREATE INDEX usage_new ON usage_events (recorded_at, id);
CREATE INDEX usage_project ON usage_events (project, recorded_at, id);
CREATE INDEX usage_run ON usage_events (run_id) WHERE run_id <> '';

CREATE TABLE agents (id TEXT PRIMARY KEY, project INTEGER NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX agents_new ON agents (project, created_at, id);
CREATE TABLE definitions (id TEXT PRIMARY KEY, project INTEGER NOT NULL, type TEXT NOT NULL, created_at INTEGER NOT NULL, record TEXT NOT NULL);
CREATE INDEX definitions_new ON definitions (project, type, created_at, id);
CREATE TABLE skilled (skill TEXT NOT NULL, project INTEGER NOT NULL, agent TEXT NOT NULL, PRIMARY KEY (skill, project, agent)) WITHOUT ROWID;
CREATE INDEX skilled_agent ON skilled (agent);
CREATE TABLE memory (
  project INTEGER NOT NULL, agent TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, pinned INTEGER NOT NULL, importance INTEGER NOT NULL, updated_at INTEGER NOT NULL, words TEXT NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (project, agent, key)
);
CREATE INDEX memory_first ON memory (project, agent, pinned, importance, updated_at, key);
CREATE TABLE memory_changes (project INTEGER NOT NULL, agent TEXT NOT NULL, cursor INTEGER NOT NULL, at INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (project, agent, cursor)) WITHOUT ROWID;
CREATE INDEX agents_name ON agents (project, name);
CREATE TABLE sessions (
  n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, project INTEGER NOT NULL, agent TEXT NOT NULL, session_key TEXT NOT NULL, scope TEXT NOT NULL, status TEXT NOT NULL, provider TEXT, integration TEXT, private INTEGER NOT NULL,
  active_at INTEGER NOT NULL, revision INTEGER NOT NULL, gone INTEGER NOT NULL, last INTEGER NOT NULL DEFAULT 0, record TEXT NOT NULL, compaction TEXT NOT NULL,
  UNIQUE (project, id)
);
CREATE TABLE session_people (session INTEGER NOT NULL, person TEXT NOT NULL, PRIMARY KEY (session, person)) WITHOUT ROWID;
CREATE INDEX sessions_active ON sessions (project, status, active_at, id);
CREATE INDEX sessions_agent ON sessions (project, agent, session_key);
CREATE TABLE session_messages (
  session INTEGER NOT NULL, id TEXT NOT NULL, turn TEXT, sequence INTEGER, hidden INTEGER NOT NULL, revision INTEGER NOT NULL, record TEXT NOT NULL, summing TEXT,
  PRIMARY KEY (session, id)
);
CREATE INDEX session_messages_sequence ON session_messages (session, sequence);
CREATE INDEX session_messages_turn ON session_messages (session, turn, sequence) WHERE turn IS NOT NULL;
CREATE TABLE session_turns (
  session INTEGER NOT NULL, id TEXT NOT NULL, project INTEGER NOT NULL, seq INTEGER NOT NULL, status TEXT NOT NULL, revision INTEGER NOT NULL, extra TEXT NOT NULL, record TEXT NOT NULL,
  PRIMARY KEY (session, id)
);
CREATE INDEX session_turns_seq ON session_turns (session, seq);
CREATE INDEX session_turns_id ON session_turns (id);
CREATE TABLE session_interactions (session INTEGER NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, revision INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (session, id));
CREATE TABLE session_nudges (session INTEGER NOT NULL, id TEXT NOT NULL, created_at INTEGER NOT NULL, status TEXT NOT NULL, turn TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (session, id));
CREATE INDEX session_messages_revision ON session_messages (session, revision) WHERE sequence IS NOT NULL AND hidden = 0;
CREATE INDEX session_turns_revision ON session_turns (session, revision);
CREATE INDEX session_turns_active ON session_turns (session, seq) WHERE status NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX session_interactions_open ON session_interactions (session, revision) WHERE status NOT IN ('completed', 'expired', 'cancelled');
CREATE INDEX session_interactions_revision ON session_interactions (session, revision);
CREATE INDEX session_nudges_new ON session_nudges (session, created_at, id);
`

/**
 * Ensures that a newly opened database has the schema.
 * @returns false when the database has another version and cannot be used.
 * @throws what SQLite throws when the file is damaged.
 */
export function migrate(db: Database): boolean {
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = NORMAL')
  db.pragma('temp_store = MEMORY')
  db.pragma('cache_size = -65536')
  // In pages: the fallback limit behind the thread that moves the log (`logs.ts`), which leaves
  // little to move.
  db.pragma('wal_autocheckpoint = 16000')
  const version = db.pragma('user_version', { simple: true })
  if (version === SCHEMA_VERSION) return true
  const tables = db.prepare<[], { n: number }>('SELECT count(*) AS n FROM sqlite_schema').get()?.n
  if (version !== 0 || tables !== 0) return false
  db.transaction(() => {
    db.exec(schema)
    db.pragma(`user_version = ${SCHEMA_VERSION}`)
  })()
  return true
}
