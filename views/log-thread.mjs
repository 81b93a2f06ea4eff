/**
 * A thread that checkpoints SQLite's write-ahead logs. It is plain JavaScript, because the thread
 * is started without a TypeScript loader. For each path that it receives, it checkpoints the log of
 * that database and sends the path back. For `undefined`, it closes its connections and sends
 * `undefined` back. `files/logs.ts` decides whether and when to checkpoint a log.
 *
 * Invariant: a connection to a file that has been replaced is never closed. Otherwise, SQLite would
 * delete the log with that name, which belongs to the new file (sqlite3WalClose).
 */
import { statSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import Database from 'better-sqlite3'

/**
 * @type {Map<string, { readonly inode: number; readonly db: import('better-sqlite3').Database }>}
 */
const open = new Map()
const replaced = []

/** @param {string} file */
function connected(file) {
  const known = open.get(file)
  // While the old file is open, a new file cannot have the same inode number.
  const inode = statSync(file).ino
  if (known?.inode === inode) return known.db
  if (known) replaced.push(known)
  open.delete(file)
  const db = new Database(file, { fileMustExist: true })
  open.set(file, { inode, db })
  return db
}

parentPort?.on('message', (/** @type {string | undefined} */ file) => {
  try {
    // A passive checkpoint does not wait for readers or writers. Anything that it cannot copy is
    // copied by a later checkpoint.
    if (file !== undefined) connected(file).pragma('wal_checkpoint(PASSIVE)')
    else
      for (const [path, { inode, db }] of open)
        if (statSync(path, { throwIfNoEntry: false })?.ino === inode) db.close()
  } catch {
    // Nothing is lost: the log is unchanged, and the view that uses the file reports its errors.
  }
  parentPort?.postMessage(file)
})
