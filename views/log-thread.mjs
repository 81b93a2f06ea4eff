/**
 * A thread that moves the content of SQLite's write-ahead logs into their databases. It is plain
 * JavaScript, because a thread does not inherit the loader of its process. It receives paths and
 * returns them; `logs.ts` decides whether and when to move a log.
 *
 * Invariant: a connection to a file that has been replaced is never closed. SQLite would delete the
 * log of that name, which is the new file's (sqlite3WalClose).
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
  // While an inode is open, no other file gets it.
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
    // The checkpoint neither blocks nor waits: pages that are being written meanwhile are moved the
    // next time.
    if (file !== undefined) connected(file).pragma('wal_checkpoint(PASSIVE)')
    else
      for (const [path, { inode, db }] of open)
        if (statSync(path, { throwIfNoEntry: false })?.ino === inode) db.close()
  } catch {
    // Nothing is lost: the log is unchanged, and the owner of the file reports its faults.
  }
  parentPort?.postMessage(file)
})
