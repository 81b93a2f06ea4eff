/**
 * The folders of the `local` provider:
 *
 *     <data>/environments/place           random id of this folder
 *     <data>/environments/owner.json      the process that uses the folder
 *     <data>/environments/<id>/control.json
 *                            /workspace   files of the environment
 *                            /worker      files of the worker outside of the workspace, and its log
 *                            /home, /tmp  only without a sandbox; a sandbox has them in memory
 *                            /logs        output of the worker, and the log of the provider
 *                            /etc, /net   configuration files and sockets of the sandbox
 *
 * Invariants:
 * L1. `control.json` is written last, so a folder without this file was not prepared completely.
 * L2. A folder is renamed before it is removed, so a partially removed environment is never found.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { privateFolder } from '../../storage/private.ts'
import { ProviderFault } from '../provider.ts'
import { identify, isRunning, type ProcessId } from './processes.ts'

/** The facts about an environment that survive a restart of the provider. */
export interface Control {
  readonly project: string
  readonly environment_id: string
  /**
   * Id of the environment's own user and group. If absent, the user and group of the host are used.
   */
  readonly uid?: number
  /** The number of the running worker; absent when no worker is running. */
  readonly generation?: number
  /** The outermost process of the running worker; absent when no worker is running. */
  readonly supervisor?: ProcessId
}
export interface Folders {
  /** The folder of all environments. */
  readonly root: string
  readonly place: string
  /** Returns the folder of an environment. @throws ProviderFault when the id is invalid. */
  of(environment_id: string): string
  /** Returns the facts about an environment; undefined when it is not in this folder. */
  read(environment_id: string): Promise<Control | undefined>
  write(control: Control): Promise<void>
  list(): Promise<readonly Control[]>
  /** Removes an environment. @throws ProviderFault when files cannot be removed. */
  remove(environment_id: string): Promise<void>
  /** Removes the folders left behind by interrupted preparations and removals. */
  removeRemains(): Promise<void>
  /** Lets another process use the folder. */
  release(): Promise<void>
}
/** Milliseconds to wait for another process that uses the folder, but may be about to end. */
const OWNER_TIMEOUT_MS = 10_000
/** Milliseconds between two checks whether the other process that uses the folder has ended. */
const LOOK_MS = 50
const REMOVED = '.removed-'
const ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

async function readJson<T>(path: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT')
      return undefined
    throw error
  }
}
/** Replaces a file. A crash leaves the old or the new content. */
async function writeAtomically(path: string, content: string): Promise<void> {
  const next = `${path}.${randomBytes(4).toString('hex')}`
  await writeFile(next, content, { mode: 0o600, flush: true })
  await rename(next, path)
}
/** Runs a program. Returns the end of its error output, which is empty on success. */
const run = (program: string, args: readonly string[]): Promise<string> =>
  new Promise((done) => {
    const child = spawn(program, args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] })
    let text = ''
    child.stderr.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-500)
    })
    child.once('error', (error) => done(error.message))
    child.once('close', (code) => done(code === 0 ? '' : text || `${program}: exit code ${code}`))
  })
/**
 * Removes a folder and its contents with `rm`, which does not follow symbolic links and can remove
 * trees whose paths exceed the maximum length of a path. The functions of Node.js cannot remove
 * such trees.
 */
async function removeTree(path: string): Promise<void> {
  if ((await run('rm', ['-rf', '--one-file-system', '--', path])) === '') return
  // `rm` cannot delete the files of a folder without write permission, unless the user is root.
  await run('chmod', ['-R', 'u+rwX', '--', path])
  const error = await run('rm', ['-rf', '--one-file-system', '--', path])
  if (error !== '') throw new ProviderFault(`Files of the environment cannot be removed: ${error}`)
}

/**
 * Claims the folder for this process. If another process uses the folder and does not end in time,
 * returns that process.
 */
async function own(file: string): Promise<ProcessId | undefined> {
  const until = performance.now() + OWNER_TIMEOUT_MS
  for (;;) {
    const owner = await readJson<ProcessId>(file)
    if (!owner || owner.pid === process.pid || !(await isRunning(owner))) break
    if (performance.now() > until) return owner
    await sleep(LOOK_MS)
  }
  await writeAtomically(file, JSON.stringify(await identify(process.pid)))
  return undefined
}

/**
 * Opens the folder of environments, and creates it if necessary.
 * @param data folder for all data of the node.
 * @returns the folders, or why they are unavailable: another process uses them.
 */
export async function openFolders(data: string): Promise<Folders | { unavailable: string }> {
  const root = join(data, 'environments')
  privateFolder(root)
  const owner = await own(join(root, 'owner.json'))
  if (owner)
    return { unavailable: `process ${owner.pid} runs environments in ${root}; stop it first` }
  const placeFile = join(root, 'place')
  let id = (await readFile(placeFile, 'utf8').catch(() => '')).trim()
  if (!/^[0-9a-f]{16}$/.test(id)) {
    id = randomBytes(8).toString('hex')
    await writeAtomically(placeFile, id)
  }
  const folderOf = (environment_id: string): string => {
    if (!ID.test(environment_id)) throw new ProviderFault('The id of the environment is invalid.')
    return join(root, environment_id)
  }
  const read = (environment_id: string) =>
    readJson<Control>(join(folderOf(environment_id), 'control.json'))
  const folders = async (): Promise<readonly string[]> =>
    (await readdir(root, { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)

  return {
    root,
    place: `local/${id}`,
    of: folderOf,
    read,
    write: (control) =>
      writeAtomically(
        join(folderOf(control.environment_id), 'control.json'),
        JSON.stringify(control),
      ),
    async list() {
      const names = (await folders()).filter((name) => ID.test(name))
      return (await Promise.all(names.map(read))).filter((one) => one !== undefined)
    },
    async remove(environment_id) {
      const removed = join(root, `${REMOVED}${randomBytes(8).toString('hex')}`)
      try {
        await rename(folderOf(environment_id), removed)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
        throw error
      }
      await removeTree(removed)
    },
    async removeRemains() {
      for (const name of await folders())
        if (name.startsWith(REMOVED) || !ID.test(name) || !(await read(name)))
          await removeTree(join(root, name))
    },
    release: () => rm(join(root, 'owner.json'), { force: true }),
  }
}

/** Creates an empty folder with a mode, regardless of the umask of this process. */
export async function createFolder(path: string, mode: number): Promise<void> {
  await mkdir(path, { mode })
  await chmod(path, mode)
}
