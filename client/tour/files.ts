/** The files that the tour measures: of a checkout what git knows or would add, of any other folder everything that is no tool's own. */
import { execFile } from 'node:child_process'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const skipped: ReadonlySet<string> = new Set(['node_modules', '.git', '.baton', '.tap'])
/** Names that print the same everywhere: others are written with escapes by some tools. */
const plain = /^[^\\\p{Cc}]+$/u
/** Files looked at together. */
const AT_ONCE = 64

export interface Sized {
  /** Relative to the folder, with `/`. */
  readonly path: string
  readonly size: number
}

/** Ordered by the bytes of the name, as `LC_ALL=C sort` does. */
export const byPath = (a: string, b: string): number =>
  Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Regular files of a folder, sorted. */
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

/** Names that git knows or would add; none when this is no checkout, or one that ignores the folder. */
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

/** Split into at most so many parts of about equal size in bytes; no part is empty. */
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
