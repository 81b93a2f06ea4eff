/**
 * Runs checks whose result depends only on the files of the project and on its packages. A check
 * that passed is not repeated until one of these files changes. Only passes are recorded, below
 * `node_modules/.cache/baton-checks`. Without that folder, every check runs.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { root } from './sources.ts'

/** The folder of recorded passes and of files that tools keep between runs. */
export const cacheFolder = join(root, 'node_modules/.cache/baton-checks')
/** Age in milliseconds above which a file in the folder of passes is deleted. */
const MAX_AGE_MS = 7 * 86_400_000
/** Files and folders that are not part of the project. */
const OUTSIDE = /^(node_modules|\.git|\.baton|\.tap)$|\.(log|cpuprofile)$/

/** Returns the paths of all files of a folder, sorted. */
const filesOf = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !OUTSIDE.test(name))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      return entry.isDirectory() ? filesOf(path) : entry.isFile() ? [path] : []
    })

/**
 * Returns a hash of all files below a folder, its installed packages and the version of Node.js.
 */
export function hashOf(folder: string): string {
  const hash = createHash('sha256').update(`${folder}\n${process.version}\n`)
  const packages = join(folder, 'node_modules/.package-lock.json')
  for (const path of [...filesOf(folder), ...(existsSync(packages) ? [packages] : [])]) {
    const content = readFileSync(path)
    hash.update(`${path}\n${content.length}\n`).update(content)
  }
  return hash.digest('hex').slice(0, 32)
}

/**
 * Runs a check, unless it passed with the same files.
 * @param name unique in the project.
 * @param check returns its findings as text; an empty text means a pass.
 * @param files returns the hash of the files on which the check depends.
 * @param folder contains the recorded passes.
 * @returns the findings of the check; empty for a pass.
 */
export async function once(
  name: string,
  check: () => Promise<string>,
  files: () => string = () => hashOf(root),
  folder: string = cacheFolder,
): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const pass = join(folder, createHash('sha256').update(`${name}\n${files()}`).digest('hex'))
  if (existsSync(pass)) return ''
  const found = await check()
  if (found !== '') return found
  for (const old of readdirSync(folder).map((one) => join(folder, one)))
    if (Date.now() - (statSync(old, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > MAX_AGE_MS)
      rmSync(old, { force: true })
  writeFileSync(pass, '')
  return ''
}
