/**
 * The schema of a view's file. There are no migrations: a view is derived data, so a file of
 * another version is deleted and rebuilt from the journal.
 *
 * Each row of a project contains the project's number or id, or belongs to a row that does. Queries
 * about one project filter by that value, directly or through that row. Projects, runs, channels
 * and sessions have short numbers that are local to the file and keep keys small. Integer times are
 * Unix milliseconds. `record` is JSON, mostly as clients see it. In the tables `runs`, `steps`,
 * `jobs` and `invocations` it is in the compact form of `Shapes`. A row of the timeline contains
 * the events of one entry, see `TimelineRow`. A row of the feed contains many frames, see
 * `views/tables/runs/frames.ts`, and the cursor of the last frame.
 */
import type { Database } from 'better-sqlite3'
import { tables } from '../views.ts'

/** Must be incremented with every change to the schema or to the data stored in it. */
export const SCHEMA_VERSION = 29

/** The tables that all views use. */
const common = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE projects (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE shapes (n INTEGER PRIMARY KEY, shape TEXT NOT NULL);
`

/**
 * Ensures that a newly opened database has the schema.
 * @returns false when the database has another version of the schema and therefore cannot be used.
 * @throws the error of SQLite if the file is damaged.
 */
export function migrate(db: Database): boolean {
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = NORMAL')
  db.pragma('temp_store = MEMORY')
  db.pragma('cache_size = -65536')
  // The limit is in pages. This automatic checkpoint is a fallback: the thread of `logs.ts` usually
  // checkpoints earlier.
  db.pragma('wal_autocheckpoint = 16000')
  const version = db.pragma('user_version', { simple: true })
  if (version === SCHEMA_VERSION) return true
  const known = db.prepare<[], { n: number }>('SELECT count(*) AS n FROM sqlite_schema').get()?.n
  if (version !== 0 || known !== 0) return false
  db.transaction(() => {
    db.exec(common + tables)
    db.pragma(`user_version = ${SCHEMA_VERSION}`)
  })()
  return true
}
