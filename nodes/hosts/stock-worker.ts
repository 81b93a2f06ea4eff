/**
 * The stock worker, `baton environment-worker`: its command, and the files of this checkout that it
 * reads.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programArguments } from '../commands/child.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Files and folders of the program, its packages and its bundle, without the data folder. */
const PARTS = [
  'package.json',
  'tsconfig.json',
  'node_modules',
  'actors',
  'client',
  'gateway',
  'nodes',
  'protocol',
  'views',
]

export interface Program {
  readonly command: readonly string[]
  /** Folders and files that the program reads. */
  readonly readable: readonly string[]
}
/** Returns the stock worker. Builds the bundle of the program if it does not exist. */
export const stockWorker = (): Program => ({
  command: [process.execPath, ...programArguments(), 'environment-worker'],
  readable: PARTS.map((name) => join(root, name)).filter((path) => existsSync(path)),
})
