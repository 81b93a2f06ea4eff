/**
 * Applies additions to a scratch copy of the program, to verify how many lines they need, and in
 * which files.
 */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { programFolders, root } from './sources.ts'

/**
 * An edit that creates a file, inserts lines after the first line that begins with `after`, or
 * replaces the first line that begins with `replace`.
 */
export type Edit = { readonly file: string } & (
  | { readonly content: string }
  | { readonly after: string; readonly lines: readonly string[] }
  | { readonly replace: string; readonly lines: readonly string[] }
)

/**
 * Copies the program to an empty folder, with a `tsconfig.json` for the copy. The copy uses the
 * installed packages of the project.
 */
export function copyProgram(to: string): void {
  for (const name of [...programFolders, 'docs/operations', 'package.json', 'package-lock.json'])
    cpSync(join(root, name), join(to, name), {
      recursive: true,
      filter: (path) => !path.endsWith('node_modules'),
    })
  symlinkSync(join(root, 'node_modules'), join(to, 'node_modules'))
  const config = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as object
  writeFileSync(join(to, 'tsconfig.json'), JSON.stringify({ ...config, include: programFolders }))
}

/**
 * Applies an edit to a copy.
 * @throws {Error} when no line of the file begins with the anchor, or when a new file already
 *   exists.
 */
export function edit(copy: string, change: Edit): void {
  const path = join(copy, change.file)
  if ('content' in change) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, change.content, { flag: 'wx' })
    return
  }
  const anchor = 'after' in change ? change.after : change.replace
  const lines = readFileSync(path, 'utf8').split('\n')
  const index = lines.findIndex((line) => line.startsWith(anchor))
  if (index < 0) throw new Error(`No line of ${change.file} begins with ${JSON.stringify(anchor)}.`)
  if ('after' in change) lines.splice(index + 1, 0, ...change.lines)
  else lines.splice(index, 1, ...change.lines)
  writeFileSync(path, lines.join('\n'))
}

/** A row of the table in CONTRIBUTING.md, "Where to add what". */
export interface MapRow {
  readonly what: string
  /**
   * Paths. `<resource>` and `<folder>` match any folder. A path that ends with a slash covers all
   * files of the folder.
   */
  readonly places: readonly string[]
  /** Number of lines outside of the addition's own folders, if the row states it. */
  readonly lines?: number
}

/**
 * Reads the rows of the table "Where to add what" from the text of CONTRIBUTING.md.
 * @throws {Error} when the document has no such table.
 */
export function readMap(text: string): MapRow[] {
  const section = /^## Where to add what$([\s\S]*?)^## /m.exec(text)?.[1] ?? ''
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| I want'))
    .map((line): MapRow => {
      const [, what = '', files = '', lines = ''] = line.split('|').map((cell) => cell.trim())
      const stated = /^\d+/.exec(lines)?.[0]
      return {
        what,
        places: [...files.matchAll(/`([^`\s]+\/[^`\s]*)`/g)].map(([, path = '']) => path),
        ...(stated !== undefined && { lines: Number(stated) }),
      }
    })
  if (rows.length === 0) throw new Error('The document has no section "Where to add what".')
  return rows
}

const isOwn = (place: string): boolean => place.includes('<')
const covers = (place: string, file: string): boolean => {
  const pattern = place.replaceAll('.', '\\.').replaceAll(/<\w+>/g, '[\\w-]+')
  return new RegExp(`^${pattern}${place.endsWith('/') ? '' : '$'}`).test(file)
}

export const unnamedFiles = (edits: readonly Edit[], places: readonly string[]): string[] =>
  edits.map(({ file }) => file).filter((file) => !places.some((place) => covers(place, file)))

/** Returns the number of edited lines in files outside of the addition's own folders. */
export const linesOutside = (edits: readonly Edit[], places: readonly string[]): number =>
  edits
    .filter(({ file }) => !places.some((place) => isOwn(place) && covers(place, file)))
    .reduce((sum, change) => sum + ('lines' in change ? change.lines.length : Number.NaN), 0)
