/**
 * The two trees that are compared: this tree, including uncommitted changes, and a commit in a
 * temporary folder. Each has its own bundle of the program. The folder and its bundle are deleted
 * when this process exits.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { StartFault } from '../../nodes/process/fault.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const loader = import.meta.resolve('@oxc-node/core/register')

/** A tree that can be measured. */
export interface Tree {
  /** Name in tables: `this tree`, or the commit. */
  readonly name: string
  /** Arguments for Node.js that start the program of the tree. */
  readonly program: readonly string[]
}

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-C', root, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()

/**
 * Builds a tree's program with the tree's own script.
 * @throws Error if the tree has no such script, or the bundle cannot be built.
 */
async function build(folder: string): Promise<readonly string[]> {
  const script = pathToFileURL(join(folder, 'nodes/boot/program.mjs')).href
  const { programOf } = (await import(script)) as {
    programOf(root: string, loader: string): readonly string[]
  }
  const program = programOf(folder, loader)
  if (!program.at(-1)?.endsWith('.mjs'))
    throw new Error(`the bundle of the program in ${folder} could not be built`)
  return program
}

/** Installs the packages of a tree in its own folder. */
async function install(folder: string, say: (line: string) => void): Promise<void> {
  const script = pathToFileURL(join(root, 'nodes/boot/dependencies.mjs')).href
  const { ensureDependencies } = (await import(script)) as {
    ensureDependencies(root: string, development: boolean, progress: typeof say): void
  }
  ensureDependencies(folder, false, say)
}

/** Builds this tree. */
export const thisTree = async (): Promise<Tree> => ({
  name: 'this tree',
  program: await build(root),
})

/**
 * Checks out and builds a commit. Links the packages of this tree if both trees have the same
 * package-lock.json. Otherwise installs the packages.
 * @param ref a commit, branch or tag.
 * @throws StartFault if there is no such commit.
 * @throws Error if the commit cannot be installed or built.
 */
export async function treeOf(ref: string, say: (line: string) => void): Promise<Tree> {
  const commit = commitOf(ref)
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'baton-tree-')))
  let program: readonly string[] = []
  process.once('exit', () => {
    deleteBundle(program.at(-1))
    rmSync(folder, { recursive: true, force: true })
  })
  const archive = join(folder, 'tree.tar')
  git('archive', '--format=tar', `--output=${archive}`, commit)
  execFileSync('tar', ['-xf', archive, '-C', folder])
  rmSync(archive)
  const lock = (tree: string) => readFileSync(join(tree, 'package-lock.json'), 'utf8')
  if (lock(folder) === lock(root))
    symlinkSync(realpathSync(join(root, 'node_modules')), join(folder, 'node_modules'))
  else {
    say(`package-lock.json of ${ref} differs`)
    await install(folder, say)
  }
  program = await build(folder)
  const name = `${ref} (${commit.slice(0, 8)})`
  return { name: commit.startsWith(ref) ? commit.slice(0, 8) : name, program }
}
function commitOf(ref: string): string {
  try {
    return git('rev-parse', '--verify', '--quiet', `${ref}^{commit}`)
  } catch {
    throw new StartFault(`There is no commit ${ref}.`)
  }
}
/**
 * Deletes the bundle of a tree, and the files in the same folder whose names begin with the base
 * name of the bundle.
 */
function deleteBundle(file: string | undefined): void {
  if (file === undefined) return
  const name = basename(file, '.mjs')
  for (const other of readdirSync(dirname(file)))
    if (other.startsWith(name)) rmSync(join(dirname(file), other), { force: true })
}
