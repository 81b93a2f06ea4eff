/** The action that lists files of the workspace. */
import { constants, type FileHandle, lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Action } from '../../worker/options.ts'
import { flag, optionalText, wholeNumber } from '../fault.ts'
import { descriptor, type Workspace } from '../workspace.ts'

/** Maximum number of entries that one call inspects. */
const MAX_SCANNED = 50_000
/** Default and maximum number of listed entries. */
const entryCounts = { standard: 200, maximum: 5000 } as const

interface Listed {
  readonly path: string
  readonly dir: boolean
  readonly size: number
  readonly modified_at: string
}
interface Scan {
  readonly found: Listed[]
  /** Whether subfolders are listed too. */
  readonly recursive: boolean
  scanned: number
  skippedGit: boolean
}

/** Lists a folder, newest entries first. */
export const listFiles =
  (workspace: Workspace): Action =>
  (parameters, { signal }) => {
    const limit = wholeNumber(parameters, 'max_entries', entryCounts)
    const scan: Scan = {
      found: [],
      recursive: flag(parameters, 'recursive'),
      scanned: 0,
      skippedGit: false,
    }
    const path = optionalText(parameters, 'path') ?? '.'
    return workspace.useFolder(path, async (folder, shown) => {
      await list(folder, shown === '.' ? '' : shown, scan, signal)
      const incomplete = scan.scanned >= MAX_SCANNED
      const truncated = incomplete || scan.found.length > limit
      const notes = [
        ...(incomplete ? [`Only ${MAX_SCANNED} entries were examined.`] : []),
        ...(scan.found.length > limit
          ? [`The newest ${limit} of ${scan.found.length} entries are listed.`]
          : []),
        ...(scan.skippedGit ? ['The content of .git folders is not listed.'] : []),
      ]
      scan.found.sort(newestFirst)
      return {
        path: shown,
        entries: scan.found.slice(0, limit),
        truncated,
        ...(notes.length > 0 && { note: notes.join(' ') }),
      }
    })
  }
const newestFirst = (a: Listed, b: Listed): number =>
  a.modified_at === b.modified_at
    ? a.path < b.path
      ? -1
      : 1
    : a.modified_at > b.modified_at
      ? -1
      : 1

/**
 * Adds the entries of a folder to `scan`, including those of subfolders if the listing is
 * recursive.
 * @param folder path of the open folder for file operations. `shown` is the path of the folder in
 * results.
 */
async function list(folder: string, shown: string, scan: Scan, signal: AbortSignal): Promise<void> {
  for (const name of await readdir(folder)) {
    signal.throwIfAborted()
    if (scan.scanned++ >= MAX_SCANNED) return
    const path = join(folder, name)
    const status = await lstat(path).catch(() => undefined)
    if (!status) continue
    const dir = status.isDirectory()
    const { size, mtime } = status
    scan.found.push({ path: join(shown, name), dir, size, modified_at: mtime.toISOString() })
    if (!dir || !scan.recursive) continue
    if (name === '.git') scan.skippedGit = true
    else await listBelow(path, join(shown, name), scan, signal)
  }
}
/** Lists a subfolder. A folder that cannot be opened, or was replaced by a link, is omitted. */
async function listBelow(
  path: string,
  shown: string,
  scan: Scan,
  signal: AbortSignal,
): Promise<void> {
  const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
  let handle: FileHandle
  try {
    handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch {
    return
  }
  try {
    await list(descriptor(handle, path), shown, scan, signal)
  } finally {
    await handle.close()
  }
}
