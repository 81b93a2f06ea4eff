/**
 * Files and folders that only their owner may read, because the data folder contains keys and the
 * data of users. Folders get mode 0700 and files mode 0600, even if they already exist. On systems
 * without such modes (Windows, some mounted volumes), modes stay unchanged.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
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
  try {
    mkdirSync(path, { recursive: true, mode: FOLDER })
  } catch (error) {
    // On a read-only file system, Node reports ENOENT for a recursive call. A plain call for the
    // first missing folder reports the cause.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') mkdirSync(firstMissing(path))
    throw error
  }
  setMode(path, FOLDER)
}
/** Returns the topmost folder of a path that does not exist. */
function firstMissing(path: string): string {
  const parent = dirname(resolve(path))
  return parent === resolve(path) || existsSync(parent) ? path : firstMissing(parent)
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
