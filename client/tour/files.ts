/**
 * Finds the files that the tour measures: in a git checkout, the tracked files and the untracked
 * ones that are not ignored; in other folders, all files. Folders that tools maintain, such as
 * `node_modules`, are always skipped.
 */
import { execFile } from 'node:child_process'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const skipped: ReadonlySet<string> = new Set(['node_modules', '.git', '.baton', '.tap'])
/** Matches paths without backslashes and control characters, which some tools would escape. */
const plain = /^[^\\\p{Cc}]+$/u
/** Number of files that are inspected concurrently. */
const AT_ONCE = 64

export interface Sized {
  /** Path relative to the folder, with `/` as separator. */
  readonly path: string
  readonly size: number
}

/** Compares paths by their bytes, as `LC_ALL=C sort` does. */
export const byPath = (a: string, b: string): number =>
  Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Returns the files to measure in a folder, sorted by path. */
export async function listFiles(folder: string): Promise<Sized[]> {
  const known = await fromGit(folder)
  const names = [...new Set(known.length > 0 ? known : await walk(folder, ''))]
    .filter((name) => plain.test(name) && !name.split('/').some((part) => skipped.has(part)))
    .sort(byPath)
  const found: Sized[] = []
  for (let at = 0; at < names.length; at += AT_ONCE) {
    const some = await Promise.all(
      names.slice(at, at + AT_ONCE).map(async (path) => {
        const stat = await lstat(join(folder, path)).catch(() => undefined)
        return stat?.isFile() ? { path, size: stat.size } : undefined
      }),
    )
    found.push(...some.filter((file) => file !== undefined))
  }
  return found
}

/**
 * Returns tracked files, and untracked files that are not ignored; empty outside of a checkout, or
 * if git ignores the folder.
 */
async function fromGit(folder: string): Promise<string[]> {
  const run = promisify(execFile)
  const listed = await run(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
    { cwd: folder, maxBuffer: 2 ** 28 },
  ).catch(() => undefined)
  return listed?.stdout.split('\0').filter((name) => name !== '') ?? []
}

async function walk(folder: string, under: string): Promise<string[]> {
  const entries = await readdir(join(folder, under), { withFileTypes: true })
  const names = await Promise.all(
    entries
      .filter(({ name }) => !skipped.has(name))
      .map(async (entry) => {
        const path = under === '' ? entry.name : `${under}/${entry.name}`
        return entry.isDirectory() ? walk(folder, path) : entry.isFile() ? [path] : []
      }),
  )
  return names.flat()
}

/**
 * Splits files into at most the given number of parts of about equal size in bytes. No part is
 * empty if there are files.
 */
export function split(files: readonly Sized[], parts: number): string[][] {
  const bins = Array.from({ length: Math.max(1, Math.min(parts, files.length)) }, () => ({
    bytes: 0,
    paths: [] as string[],
  }))
  for (const { path, size } of [...files].sort(
    (a, b) => b.size - a.size || byPath(a.path, b.path),
  )) {
    const smallest = bins.reduce((least, bin) =>
      bin.bytes < least.bytes ||
      (bin.bytes === least.bytes && bin.paths.length < least.paths.length)
        ? bin
        : least,
    )
    smallest.bytes += size
    smallest.paths.push(path)
  }
  return bins.map(({ paths }) => paths.sort(byPath))
}
