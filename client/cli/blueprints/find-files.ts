/**
 * Finds and reads the files of a blueprint. Invariants:
 * F1. Documents and the texts that they reference are inside the folder given with `-f`, or inside
 *     the folder of the given file. Symbolic links are resolved before the check.
 * F2. Files are encoded in UTF-8, and their size and number are bounded. They are read in the order
 *     of their names.
 */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, extname, isAbsolute, join, resolve, sep } from 'node:path'
import { Mistake } from '../mistake.ts'

/** A file that contains documents, or standard input. */
export interface BlueprintFile {
  /** Name of the file in messages. */
  readonly name: string
  /** Absolute path of the folder that contains the file. */
  readonly folder: string
  /** Absolute path of the folder that must contain the texts to which the file refers. */
  readonly root: string
  readonly text: string
}
/**
 * Maximum sizes of a document and of a referenced text in bytes, number of files, and folder depth.
 */
export const fileLimits = { document: 16_777_216, text: 1_048_576, files: 5000, depth: 32 } as const

const isDocument = (name: string): boolean =>
  ['.yaml', '.yml', '.json'].includes(extname(name).toLowerCase())
const codeOf = (error: unknown): string =>
  (error as NodeJS.ErrnoException).code ?? String((error as Error).message)

const isInside = (path: string, folder: string): boolean =>
  path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

function textOf(
  path: string,
  most: number,
): { readonly text: string } | { readonly fault: string } {
  try {
    const stat = statSync(path)
    if (!stat.isFile()) return { fault: 'is not a file' }
    if (stat.size > most) return { fault: `has more than ${most} bytes` }
    return decoded(readFileSync(path))
  } catch (error) {
    return { fault: `cannot be read (${codeOf(error)})` }
  }
}
/** Decodes UTF-8 and removes a byte order mark. */
function decoded(bytes: Uint8Array): { readonly text: string } | { readonly fault: string } {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return { fault: 'is not UTF-8' }
  }
}

/** Adds the paths of the documents in a folder, recursively, in the order of their names. */
function collect(folder: string, found: string[], depth = 0): void {
  if (depth > fileLimits.depth) throw new Mistake(`${folder} is nested too deeply.`)
  const entries = readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.') && name !== 'node_modules')
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) collect(path, found, depth + 1)
    else if (isDocument(entry.name)) found.push(path)
    if (found.length > fileLimits.files)
      throw new Mistake(`${folder} has more than ${fileLimits.files} files.`)
  }
}

/**
 * Reads the files given with the flags `-f`: files, folders with all their documents, or `-` for
 * standard input. A file that is given several times is read once.
 * @param stdin returns the bytes of standard input.
 * @throws Mistake if a path does not exist or contains no documents, or if a file cannot be read or
 * is a link to a file outside of the given folder.
 */
export function findFiles(paths: readonly string[], stdin: () => Uint8Array): BlueprintFile[] {
  const files = new Map<string, BlueprintFile>()
  const add = (name: string, root: string): void => {
    const path = resolve(name)
    if (files.has(path)) return
    const read = textOf(path, fileLimits.document)
    if ('fault' in read) throw new Mistake(`${name} ${read.fault}.`)
    files.set(path, { name, folder: dirname(path), root, text: read.text })
  }
  for (const path of paths) {
    if (path === '-') {
      const read = decoded(stdin())
      if ('fault' in read) throw new Mistake(`The standard input ${read.fault}.`)
      const folder = process.cwd()
      files.set('-', { name: '<stdin>', folder, root: folder, text: read.text })
      continue
    }
    const stat = statSync(path, { throwIfNoEntry: false })
    if (!stat) throw new Mistake(`${path} does not exist.`)
    if (!stat.isDirectory()) {
      add(path, dirname(resolve(path)))
      continue
    }
    const found: string[] = []
    collect(path, found)
    if (found.length === 0) throw new Mistake(`${path} contains no .yaml, .yml or .json file.`)
    for (const name of found) {
      if (!isInside(realpathSync(name), realpathSync(path)))
        throw new Mistake(`${name} is a link to a file outside of ${path}.`)
      add(name, resolve(path))
    }
  }
  return [...files.values()]
}

/**
 * Returns the text of a file that a document references, or its fault. One trailing line break is
 * removed, because editors add it.
 * @param name path relative to the folder of the document.
 */
export function textFile(
  { folder, root }: Pick<BlueprintFile, 'folder' | 'root'>,
  name: string,
): { readonly text: string } | { readonly fault: string } {
  if (name === '' || name.includes('\0') || isAbsolute(name))
    return { fault: `the file ${JSON.stringify(name)} must be a relative path` }
  try {
    const path = realpathSync(join(folder, name))
    const bound = realpathSync(root)
    if (!isInside(path, bound))
      return { fault: `the file ${name} is outside of the folder ${basename(bound)}` }
    const read = textOf(path, fileLimits.text)
    return 'fault' in read
      ? { fault: `the file ${name} ${read.fault}` }
      : { text: read.text.replace(/\n$/, '') }
  } catch (error) {
    return { fault: `the file ${name} cannot be read (${codeOf(error)})` }
  }
}
