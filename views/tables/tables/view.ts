/** The view of tables: their definitions, their rows, and the sorted and full-text indexes. */
import { defineView } from '../../define-view.ts'
import { applyAudit } from '../access/audit.ts'
import { applyTable, rowGet, tableFacts } from './changes.ts'
import { missingTable, tableList, tableOf, tableStats } from './definitions.ts'
import { maintainTables, needsMaintenance } from './maintenance.ts'
import { queryRows } from './query.ts'
import { CODE_LENGTH, PREFIX_LENGTH } from './rows.ts'
import { searchRows } from './search.ts'

/**
 * The lengths of the prefixes that the full-text index stores: a table's code and 1 to
 * `PREFIX_LENGTH` more characters.
 */
const PREFIXES = Array.from({ length: PREFIX_LENGTH }, (_, i) => CODE_LENGTH + 1 + i).join(' ')
const tables = `
CREATE TABLE tables (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project INTEGER NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  hides INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE INDEX tables_new ON tables (project, created_at, id);
CREATE INDEX tables_name ON tables (project, name);
CREATE TABLE table_counts (
  tbl INTEGER PRIMARY KEY,
  rows INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  change INTEGER NOT NULL
);
CREATE TABLE table_rows (
  n INTEGER PRIMARY KEY,
  tbl INTEGER NOT NULL,
  id TEXT NOT NULL,
  identity BLOB NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  stamp INTEGER NOT NULL,
  record TEXT NOT NULL
);
CREATE UNIQUE INDEX table_rows_id ON table_rows (tbl, id);
CREATE UNIQUE INDEX table_rows_identity ON table_rows (tbl, identity);
CREATE UNIQUE INDEX table_rows_stamp ON table_rows (stamp);
CREATE TABLE table_orders (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  tbl INTEGER NOT NULL,
  fields TEXT NOT NULL,
  fixed INTEGER NOT NULL,
  state INTEGER NOT NULL,
  reached BLOB
);
CREATE INDEX table_orders_of ON table_orders (tbl, n);
CREATE INDEX table_orders_left ON table_orders (state) WHERE state > 0;
CREATE TABLE table_keys (
  ordering INTEGER NOT NULL,
  key BLOB NOT NULL,
  row INTEGER NOT NULL,
  PRIMARY KEY (ordering, key)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE table_words USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii',
  prefix = '${PREFIXES}'
);
CREATE TABLE dead_stamps (stamp INTEGER PRIMARY KEY);
CREATE TABLE dropped_tables (tbl INTEGER PRIMARY KEY);
`

export const dataTables = defineView({
  kinds: { table: [applyAudit, applyTable] },
  tables,
  upkeep: { isDue: needsMaintenance, perform: maintainTables },
  queries: {
    'table.list': ({ store, project }, input) => tableList(store, project, input),
    'table.get': ({ store, project }, { id }) => tableOf(store, project, id)?.table ?? missingTable,
    'table.stats': ({ store, project, now }, { id }) => tableStats(store, project, id, now),
    'table.query': ({ store, project }, input) => queryRows(store, project, input),
    'table.search': ({ store, project }, input) => searchRows(store, project, input),
    'row.get': ({ store, project }, input) => rowGet(store, project, input),
    table_facts: ({ store, project }, input) => tableFacts(store, project, input),
  },
})
