/**
 * Files and folders that only their owner may read: the data folder holds keys, and everything that users stored.
 * Existing ones of earlier releases are tightened. Systems that know no such modes (Windows, some mounted volumes) keep theirs.
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
import { join } from 'node:path'

const FOLDER = 0o700
const FILE = 0o600
/** Set on shared folders such as /tmp, whose mode is not ours to change. */
const STICKY = 0o1000

/** Set a mode where the system and the owner of the file permit it. */
function tighten(path: string, mode: number): void {
  try {
    const found = statSync(path).mode & 0o7777
    if (found !== mode && (found & STICKY) === 0) chmodSync(path, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'ENOENT' && code !== 'EROFS' && code !== 'ENOTSUP') throw error
  }
}

/** Make a folder of mode 0700, or give an existing one that mode. */
export function privateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: FOLDER })
  tighten(path, FOLDER)
}

/** The same for a folder that holds files only: they get mode 0600. Folders in it stay as they are. */
export function privateFiles(path: string): void {
  privateFolder(path)
  for (const entry of readdirSync(path, { withFileTypes: true }))
    if (entry.isFile()) tighten(join(path, entry.name), FILE)
}

/** Write a file of mode 0600; an existing one has that mode before it has the new content. */
export function writePrivate(path: string, content: string): void {
  closeSync(openSync(path, 'a', FILE))
  tighten(path, FILE)
  writeFileSync(path, content)
}

/** Give an existing file mode 0600. */
export const privateFile = (path: string): void => tighten(path, FILE)
