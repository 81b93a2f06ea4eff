/**
 * A thread that moves what SQLite's write-ahead logs hold into their databases. It is plain JavaScript, because a thread does
 * not get the loader of its process. Boundary: it gets paths and gives them back; whether and when is `logs.ts`.
 *
 * Invariant: a connection to a file that was made anew is never closed. SQLite would delete the log of that name, which is the
 * new file's (sqlite3WalClose).
 */
import { statSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import Database from 'better-sqlite3'

/** @type {Map<string, { readonly inode: number; readonly db: import('better-sqlite3').Database }>} */
const open = new Map()
const replaced = []

/** @param {string} file */
function connected(file) {
  const known = open.get(file)
  // An inode that is open is not given to another file.
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
    // Nobody waits for it and it waits for nobody: what is being written meanwhile is moved the next time.
    if (file !== undefined) connected(file).pragma('wal_checkpoint(PASSIVE)')
    else
      for (const [path, { inode, db }] of open)
        if (statSync(path, { throwIfNoEntry: false })?.ino === inode) db.close()
  } catch {
    // Nothing is lost: the log is as it was, and its owner says what is wrong with a file.
  }
  parentPort?.postMessage(file)
})
