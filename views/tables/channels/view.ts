/** The view of channels: members, events, exchanges and messages. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import {
  agentsOf,
  channelAccess,
  channelGet,
  channelList,
  channelRow,
  channelsOf,
  memberList,
} from './channels.ts'
import { applyChannel, channelEventPage, channelEvents } from './events.ts'
import { exchangeList } from './exchanges.ts'
import { searchMessages } from './message-search.ts'
import { deleteDropped, hasDropped, messageFacts, messageGet, messageList } from './messages.ts'

const tables = `
CREATE TABLE channels (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project INTEGER NOT NULL,
  kind TEXT NOT NULL,
  private INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  members INTEGER NOT NULL,
  message_seq INTEGER NOT NULL,
  last_message_at TEXT,
  last INTEGER NOT NULL,
  mixed INTEGER NOT NULL DEFAULT 0,
  record TEXT NOT NULL
);
CREATE INDEX channels_mixed ON channels (project) WHERE mixed = 1;
CREATE INDEX channels_open ON channels (project, created_at, id) WHERE private = 0;
CREATE INDEX channels_kind ON channels (project, kind, created_at, id);
CREATE TABLE channel_members (
  channel INTEGER NOT NULL,
  member TEXT NOT NULL,
  project INTEGER NOT NULL,
  channel_id TEXT NOT NULL,
  born INTEGER NOT NULL,
  joined_at INTEGER NOT NULL,
  last_read INTEGER NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (channel, member)
);
CREATE INDEX members_joined ON channel_members (channel, joined_at, member);
CREATE INDEX members_mine ON channel_members (project, member, born, channel_id);
CREATE TABLE channel_events (
  channel INTEGER NOT NULL,
  cursor INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  message INTEGER,
  payload TEXT,
  PRIMARY KEY (channel, cursor)
) WITHOUT ROWID;
CREATE TABLE channel_exchanges (
  cursor INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  channel INTEGER NOT NULL,
  agent TEXT NOT NULL,
  status TEXT NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX channel_exchanges_new ON channel_exchanges (channel, cursor);
CREATE TABLE messages (
  cursor INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  channel INTEGER NOT NULL,
  sender TEXT NOT NULL,
  root TEXT,
  pinned INTEGER NOT NULL,
  replies INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX messages_channel ON messages (channel, cursor);
CREATE INDEX messages_sender ON messages (channel, sender, cursor);
CREATE INDEX messages_thread ON messages (channel, root, cursor) WHERE root IS NOT NULL;
CREATE INDEX messages_pinned ON messages (channel, cursor) WHERE pinned = 1;
CREATE VIRTUAL TABLE message_words USING fts5 (content, place, content = '', contentless_delete = 1);
CREATE TABLE dropped (channel INTEGER PRIMARY KEY);
CREATE TABLE thread_agents (
  channel INTEGER NOT NULL,
  root TEXT NOT NULL,
  agent TEXT NOT NULL,
  PRIMARY KEY (channel, root, agent)
) WITHOUT ROWID;
`

export const channels = defineView({
  kinds: { channel: [applyAudit, applyChannel] },
  tables,
  upkeep: { isDue: hasDropped, perform: deleteDropped },
  queries: {
    'channel.list': ({ store, project }, input) => channelList(store, project, input),
    'channel.get': ({ store, project }, input) => channelGet(store, project, input),
    'channel.members': ({ store, project }, input) => memberList(store, project, input),
    'channel.exchanges': ({ store, project }, input) => exchangeList(store, project, input),
    'channel.messages': ({ store, project }, input) => messageList(store, project, input),
    'channel.message': ({ store, project }, input) => messageGet(store, project, input),
    'channel.search': ({ store, project }, input) => searchMessages(store, project, input),
    'channel.events': ({ store, project }, input) => channelEventPage(store, project, input),
    channel_events: ({ store, project, oldest, current }, input) => ({
      ...channelEvents(store, project, input, oldest),
      current,
    }),
    channel_agents: ({ store, project }, { id }) => agentsOf(store, project, id),
    channel_access: ({ store, project, current }, input) =>
      channelAccess(store, project, input, current),
    channel_facts: ({ store, project }, { id, message_id }) =>
      messageFacts(channelRow(store, project, id), store, message_id),
    channels_of: ({ store, project }, { member_id }) => channelsOf(store, project, member_id),
  },
})
