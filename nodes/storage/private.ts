/**
 * Files and folders that only their owner may read, because the data folder contains keys and the
 * data of users. Folders get mode 0700 and files mode 0600, even if they already exist. On systems
 * without such modes (Windows, some mounted volumes), modes stay unchanged.
 */
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Permission bits of folders: only the owner has access. */
const FOLDER = 0o700
/** Permission bits of files: only the owner has access. */
const FILE = 0o600
/** The sticky bit: set on shared folders such as /tmp, whose mode must not be changed. */
const STICKY = 0o1000

/** Sets a mode where the system and the owner of the file permit it, except on shared folders. */
function setMode(path: string, mode: number): void {
  try {
    const found = statSync(path).mode & 0o7777
    if (found !== mode && (found & STICKY) === 0) chmodSync(path, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'ENOENT' && code !== 'EROFS' && code !== 'ENOTSUP') throw error
  }
}

/** Creates a folder with mode 0700, or gives an existing one that mode. */
export function privateFolder(path: string): void {
  createFolder(resolve(path))
  setMode(path, FOLDER)
}
/**
 * Creates a folder with its parents, if it is missing. On file systems that accept no new folders,
 * such as `/proc`, a recursive `mkdirSync` of Node does not end. On read-only ones, it does not
 * report the cause.
 */
function createFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  if (dirname(path) !== path) createFolder(dirname(path))
  try {
    mkdirSync(path, { mode: FOLDER })
  } catch (error) {
    // Another process may have created the folder in the meantime.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

/**
 * Like `privateFolder`, but also gives the files in the folder mode 0600. Subfolders and their
 * files are not changed.
 */
export function privateFiles(path: string): void {
  privateFolder(path)
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isFile()) setMode(join(path, entry.name), FILE)
}

/**
 * Gives every user the execute permission on a folder, so that other users can enter it on the way
 * to a path that they may access, but not list it.
 */
export function letOthersEnter(path: string): void {
  setMode(path, (statSync(path).mode & 0o7777) | 0o001)
}

/**
 * Writes a file with mode 0600. An existing file is given that mode before its new content is
 * written.
 */
export function writePrivate(path: string, content: string): void {
  closeSync(openSync(path, 'a', FILE))
  setMode(path, FILE)
  writeFileSync(path, content)
}

/** Gives an existing file mode 0600. */
export const privateFile = (path: string): void => setMode(path, FILE)
