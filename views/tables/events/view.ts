/** The view of source events. */
import { defineView } from '../../define-view.ts'
import { applySourceEvents, eventGet, eventList, publishedKeys } from './source-events.ts'

const tables = `
CREATE TABLE source_events (
  cursor INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  project INTEGER NOT NULL,
  event_type TEXT NOT NULL,
  source_kind TEXT NOT NULL,
  source_id TEXT NOT NULL,
  dedup TEXT,
  session TEXT,
  owner TEXT,
  record TEXT NOT NULL
);
CREATE INDEX source_events_dedup ON source_events (project, dedup, cursor) WHERE dedup IS NOT NULL;
CREATE INDEX source_events_new ON source_events (project, cursor);
CREATE INDEX source_events_type ON source_events (project, event_type, cursor);
CREATE INDEX source_events_source ON source_events (project, source_id, cursor);
`

export const events = defineView({
  kinds: { events: applySourceEvents },
  gathers: ['events'],
  tables,
  queries: {
    'event.list': ({ store, project }, input) => eventList(store, project, input),
    'event.get': ({ store, project }, input) => eventGet(store, project, input),
    published_keys: ({ store, project }, input) => publishedKeys(store, project, input),
  },
})
