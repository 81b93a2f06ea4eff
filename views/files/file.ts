/**
 * Creates, opens, validates and deletes the file of a view. A file may be lost at any time: a
 * missing or unusable file is replaced by an empty file. The schema is in `migrate.ts`.
 */
import { closeSync, openSync, rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { Store } from '../store.ts'
import { migrate } from './migrate.ts'

/** Whether an error shows that the file is damaged, so that it must be replaced. */
export const isDamagedFile = (error: unknown): boolean =>
  error instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB|FORMAT)/.test(error.code)

/**
 * Opens the store of a file. Creates the file if it does not exist, and recreates it if it is
 * damaged or has another schema.
 * @throws any other error of SQLite; an error if the new file is unusable too.
 */
export function openStore(file: string): Store {
  for (const again of [true, false]) {
    makePrivate(file)
    const db = file === ':memory:' ? emptyInMemory() : new Database(file)
    try {
      if (migrate(db)) return checked(new Store(db))
    } catch (error) {
      if (!isDamagedFile(error) || !again) {
        db.close()
        throw error
      }
    }
    db.close()
    removeFile(file)
  }
  throw new Error(`view: ${file} cannot be recreated`)
}
/** The pages of a database that has the schema but no rows; undefined until they are needed. */
let empty: Buffer | undefined
/**
 * Returns a new database in memory that already has the schema. Copying the pages of `empty` takes
 * 1 ms; creating the tables would take 6 ms.
 */
function emptyInMemory(): Database.Database {
  if (!empty) {
    const db = new Database(':memory:')
    migrate(db)
    empty = db.serialize()
    db.close()
  }
  return new Database(empty)
}
/**
 * Creates a missing file before SQLite does, so that only the user who runs the process may access
 * it. SQLite creates the file's logs with the same mode.
 */
function makePrivate(file: string): void {
  if (file !== ':memory:') closeSync(openSync(file, 'a', 0o600))
}
/** Returns the store after a first read, which reveals a damaged file. */
function checked(store: Store): Store {
  store.all('SELECT key, value FROM meta')
  return store
}
/** Deletes a view's file and its logs. */
export function removeFile(file: string): void {
  if (file !== ':memory:')
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
}
