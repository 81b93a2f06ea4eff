/** The view of agent sessions: messages, turns, interactions and nudges. */
import { defineView } from '../../define-view.ts'
import { sessionAccess } from './access.ts'
import {
  messagesOfSession,
  messagesOfTurn,
  nudgeGet,
  nudgeList,
  sessionGet,
  sessionList,
  turnGet,
  turnList,
} from './lists.ts'
import { applySession } from './sessions.ts'
import { liveRows, transcriptPage } from './transcript.ts'

const tables = `
CREATE TABLE sessions (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  project INTEGER NOT NULL,
  agent TEXT NOT NULL,
  session_key TEXT NOT NULL,
  scope TEXT NOT NULL,
  status TEXT NOT NULL,
  provider TEXT,
  integration TEXT,
  private INTEGER NOT NULL,
  active_at INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  gone INTEGER NOT NULL,
  last INTEGER NOT NULL DEFAULT 0,
  record TEXT NOT NULL,
  compaction TEXT NOT NULL,
  UNIQUE (project, id)
);
CREATE TABLE session_people (
  session INTEGER NOT NULL,
  person TEXT NOT NULL,
  PRIMARY KEY (session, person)
) WITHOUT ROWID;
CREATE INDEX sessions_active ON sessions (project, status, active_at, id);
CREATE INDEX sessions_agent ON sessions (project, agent, session_key);
CREATE TABLE session_messages (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  turn TEXT,
  sequence INTEGER,
  hidden INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  record TEXT NOT NULL,
  summing TEXT,
  PRIMARY KEY (session, id)
);
CREATE INDEX session_messages_sequence ON session_messages (session, sequence);
CREATE INDEX session_messages_turn ON session_messages (session, turn, sequence)
  WHERE turn IS NOT NULL;
CREATE TABLE session_turns (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  project INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  status TEXT NOT NULL,
  revision INTEGER NOT NULL,
  extra TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (session, id)
);
CREATE INDEX session_turns_seq ON session_turns (session, seq);
CREATE INDEX session_turns_id ON session_turns (id);
CREATE TABLE session_interactions (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  status TEXT NOT NULL,
  revision INTEGER NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (session, id)
);
CREATE TABLE session_nudges (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL,
  turn TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (session, id)
);
CREATE INDEX session_messages_revision ON session_messages (session, revision)
  WHERE sequence IS NOT NULL AND hidden = 0;
CREATE INDEX session_turns_revision ON session_turns (session, revision);
CREATE INDEX session_turns_active ON session_turns (session, seq)
  WHERE status NOT IN ('completed', 'failed', 'cancelled');
CREATE INDEX session_interactions_open ON session_interactions (session, revision)
  WHERE status NOT IN ('completed', 'expired', 'cancelled');
CREATE INDEX session_interactions_revision ON session_interactions (session, revision);
CREATE INDEX session_nudges_new ON session_nudges (session, created_at, id);
`

export const sessions = defineView({
  kinds: { session: applySession },
  tables,
  queries: {
    session_access: ({ store, project }, input) => sessionAccess(store, project, input),
    'session.list': ({ store, project }, input) => sessionList(store, project, input),
    'session.get': ({ store, project, now }, input) => sessionGet(store, project, input, now),
    'session.messages': ({ store, project }, input) => messagesOfSession(store, project, input),
    'session.turn_messages': ({ store, project }, input) => messagesOfTurn(store, project, input),
    'session.turns': ({ store, project }, input) => turnList(store, project, input),
    'session.turn': ({ store, project }, input) => turnGet(store, project, input),
    'session.nudges': ({ store, project }, input) => nudgeList(store, project, input),
    'session.get_nudge': ({ store, project }, input) => nudgeGet(store, project, input),
    'session.transcript': ({ store, project }, input) => transcriptPage(store, project, input),
    'session.turn_live': ({ store, project }, input) => liveRows(store, project, input),
  },
})
