/** Reads the source files of the project. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

export const root = join(import.meta.dirname, '../../..')
/** The folders that contain the program, without tests and benchmarks. */
export const programFolders = [
  'protocol',
  'actors',
  'gateway',
  'views',
  'nodes',
  'client',
  'console',
] as const

/** The text of each file, by its path relative to the root, with `/` as separator. */
export type Sources = ReadonlyMap<string, string>

/**
 * Reads all TypeScript and JavaScript modules below the given folders.
 * @throws the error of the file system if a folder does not exist.
 */
export const readSources = (folders: readonly string[] = programFolders): Sources =>
  new Map(
    folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.m?tsx?$|\.mjs$/.test(name) && !name.includes('node_modules'))
        .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
        .toSorted()
        .map((path) => [path, readFileSync(join(root, path), 'utf8')] as const),
    ),
  )
