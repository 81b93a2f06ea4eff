/**
 * Gives jobs access to the files of a workspace by path.
 *
 * Invariants:
 * P1. No path escapes the workspace, neither through `..` nor through symbolic links.
 * P2. On Linux, P1 also holds while other processes change folders and links. Each folder is opened
 *     from its parent without following links, and entries are reached through the open folder.
 */
import { existsSync } from 'node:fs'
import { constants, type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { ActionFault } from './fault.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants
const hasDescriptors = existsSync('/proc/self/fd')

/** An entry of an open folder. The entry may not exist. */
export interface Entry {
  /** Path for file operations; valid while the folder is open. */
  readonly path: string
  /** Path relative to the workspace. */
  readonly shown: string
  /** Name in its folder. */
  readonly name: string
  /** Returns the path of another entry of the same folder. */
  beside(name: string): string
}
interface UseOptions {
  /** Whether missing parent folders of the entry are created. */
  readonly create?: boolean
  /** Whether a symbolic link itself is used instead of its target. */
  readonly link?: boolean
}

export class Workspace {
  /** Real path of the root. */
  readonly root: string
  readonly #given: string
  private constructor(root: string, given: string) {
    this.root = root
    this.#given = given
  }
  /**
   * Opens a workspace.
   * @throws Error if the folder does not exist.
   */
  static async open(folder: string): Promise<Workspace> {
    return new Workspace(await realpath(folder), resolve(folder))
  }

  /** Returns the real path of an existing folder; the root if the path is absent. */
  async folder(path = '.'): Promise<string> {
    const real = await explained(path, () => realpath(this.#absolute(path)))
    this.#check(path, real)
    const { isDirectory } = await explained(path, () => statOf(real))
    if (!isDirectory) throw new ActionFault('not_a_directory', `${path} is not a folder`)
    return real
  }
  /** Creates a folder and its parents unless they exist, and returns its real path. */
  async createFolder(path: string): Promise<string> {
    if (!this.isRoot(path))
      await this.use(path, { create: true }, (entry) =>
        mkdir(entry.path).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'EEXIST') throw error
        }),
      )
    return this.folder(path)
  }
  /** Returns the path that results show for a real path. */
  shown(real: string): string {
    return relative(this.root, real) || '.'
  }
  /** Whether the path refers to the root of the workspace. */
  isRoot(path: string): boolean {
    return this.#absolute(path) === this.root
  }
  /** Opens a folder, and calls `run` with its path for file operations and its path for results. */
  async useFolder<T>(path: string, run: (folder: string, shown: string) => Promise<T>): Promise<T> {
    const real = await this.folder(path)
    return explained(path, () =>
      this.#walk(real, false, (handle) => run(descriptor(handle, real), this.shown(real))),
    )
  }
  /**
   * Opens the folder of an entry, and calls `run` with the entry.
   * @throws ActionFault with the type `outside_workspace`, `not_found` or another type from
   * `explanations`.
   */
  async use<T>(
    path: string,
    { create = false, link = false }: UseOptions,
    run: (entry: Entry) => Promise<T>,
  ): Promise<T> {
    const absolute = link ? this.#absolute(path) : await this.#followed(path)
    if (absolute === this.root)
      throw new ActionFault('is_a_directory', `${path} is the workspace itself`)
    const parent = await explained(path, () => existing(dirname(absolute)))
    this.#check(path, parent)
    return explained(path, () =>
      this.#walk(parent, create, (handle) => {
        const folder = descriptor(handle, parent)
        const name = basename(absolute)
        return run({
          path: join(folder, name),
          name,
          shown: join(this.shown(parent), name),
          beside: (other) => join(folder, other),
        })
      }),
    )
  }

  /**
   * Returns the absolute path with its symbolic links resolved. If the path does not exist, its
   * links remain unresolved, and a path that is itself a link is refused.
   */
  async #followed(path: string): Promise<string> {
    const absolute = this.#absolute(path)
    const real = await realpath(absolute).catch(() => undefined)
    if (real !== undefined) {
      this.#check(path, real)
      return real
    }
    if ((await lstat(absolute).catch(() => undefined))?.isSymbolicLink())
      throw new ActionFault('not_found', `${path} is a link to something that does not exist`)
    return absolute
  }
  #absolute(path: string): string {
    if (path.includes('\0')) throw new ActionFault('invalid_parameters', 'a path contains NUL')
    const absolute = resolve(this.root, path)
    // The configured path of the root may contain links, so a path below it is mapped to the real
    // root.
    const moved =
      isAbsolute(path) && isInside(this.#given, absolute)
        ? resolve(this.root, relative(this.#given, absolute))
        : absolute
    this.#check(path, moved)
    return moved
  }
  #check(path: string, absolute: string): void {
    if (!isInside(this.root, absolute))
      throw new ActionFault('outside_workspace', `${path} is outside of the workspace`)
  }
  /**
   * Opens a folder one path segment at a time, starting at the root, and calls `run` with the open
   * folder.
   */
  async #walk<T>(
    real: string,
    create: boolean,
    run: (folder: FileHandle) => Promise<T>,
  ): Promise<T> {
    const names = relative(this.root, real).split(sep).filter(Boolean)
    let handle = await open(this.root, O_RDONLY | O_DIRECTORY)
    let path = this.root
    try {
      for (const name of names) {
        const next = join(descriptor(handle, path), name)
        if (create)
          await mkdir(next).catch((error: NodeJS.ErrnoException) => {
            if (error.code !== 'EEXIST') throw error
          })
        const child = await open(next, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        await handle.close()
        handle = child
        path = join(path, name)
      }
      return await run(handle)
    } finally {
      await handle.close()
    }
  }
}

const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root === sep ? sep : root + sep)
/**
 * Returns a path to an open file or folder that stays valid when the file or folder is renamed. On
 * systems without /proc, returns the given path.
 */
export const descriptor = (handle: FileHandle, path: string): string =>
  hasDescriptors ? `/proc/self/fd/${handle.fd}` : path
const statOf = async (path: string) => {
  const handle = await open(path, O_RDONLY | constants.O_NONBLOCK)
  try {
    return { isDirectory: (await handle.stat()).isDirectory() }
  } finally {
    await handle.close()
  }
}
/** Resolves the links of the longest existing prefix of a path. */
async function existing(path: string): Promise<string> {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await realpath(at), ...missing)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(at) === at) throw error
      missing.unshift(basename(at))
    }
  }
}

/** Error types and explanations by operating system error code. */
const explanations: Readonly<Record<string, readonly [string, string]>> = {
  ENOENT: ['not_found', 'does not exist'],
  ENOTDIR: ['not_a_directory', 'is not a folder, or a part of the path is not'],
  EISDIR: ['is_a_directory', 'is a folder'],
  ENOTEMPTY: ['not_empty', 'is not empty'],
  EACCES: ['permission_denied', 'may not be accessed'],
  EPERM: ['permission_denied', 'may not be changed'],
  ELOOP: ['outside_workspace', 'is a symbolic link'],
  ENOSPC: ['no_space', 'does not fit: the disk is full'],
  EDQUOT: ['no_space', 'does not fit: the quota is used up'],
  EFBIG: ['no_space', 'does not fit: the file would be too large'],
  ENAMETOOLONG: ['invalid_parameters', 'is too long'],
  ENXIO: ['not_a_file', 'is not a regular file'],
}
/**
 * Runs a file operation, and converts system errors.
 * @throws ActionFault whose message contains the path as given by the job.
 */
async function explained<T>(path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const explanation = explanations[code]
    if (explanation) throw new ActionFault(explanation[0], `${path} ${explanation[1]}`)
    throw error
  }
}
