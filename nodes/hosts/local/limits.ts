/**
 * Limits all processes of an environment together, with Linux control groups. Version 2 is used
 * where the controllers for memory, processes and processors are delegated to this process.
 * Otherwise the available controllers of version 1 are used. The groups are below the group of this
 * process, so the limits of that group apply as well.
 */
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The limits of one environment. */
export interface ResourceLimits {
  readonly memory_bytes: number
  /** Number of processors; may be a fraction. */
  readonly cpus: number
  readonly disk_bytes: number
  readonly processes: number
}
type Controller = 'memory' | 'pids' | 'cpu'
const controllers = ['memory', 'pids', 'cpu'] as const
interface Group {
  /** Files to which a process writes its id in order to join the group. */
  readonly join: readonly string[]
  /** Returns how many processes were killed because of the memory limit. */
  oomKills(): Promise<number>
  /** Removes the group, which must have no processes. */
  remove(): Promise<void>
}
export interface Groups {
  readonly version: 1 | 2
  readonly controllers: readonly Controller[]
  create(name: string, limits: ResourceLimits): Promise<Group>
  /** Removes the groups that an earlier process left behind. */
  clear(): Promise<void>
  /** Removes the parent group of the workers' groups. */
  close(): Promise<void>
}
/** The folder of this process's group, by controller. With version 2, all folders are the same. */
export interface Hierarchy {
  readonly version: 1 | 2
  readonly folders: Readonly<Partial<Record<Controller, string>>>
}

/** Period in microseconds for which the CPU quota of a control group applies. */
const PERIOD_US = 100_000
/** Number of attempts to remove a control group that is still in use. */
const REMOVE_TRIES = 100
/** Milliseconds between two attempts to remove a control group. */
const REMOVE_WAIT_MS = 10

const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')

/** Finds the groups of this process, without changing them. */
async function hierarchies(): Promise<readonly Hierarchy[]> {
  /** Paths in the hierarchies, by controller. The key of version 2 is ''. */
  const paths = new Map<string, string>()
  for (const line of (await read('/proc/self/cgroup')).trim().split('\n')) {
    const [, names = '', ...path] = line.split(':')
    for (const name of names.split(',')) paths.set(name, path.join(':'))
  }
  const first: Partial<Record<Controller, string>> = {}
  let second: string | undefined
  for (const line of (await read('/proc/self/mountinfo')).trim().split('\n')) {
    const [left = '', right = ''] = line.split(' - ')
    const [, , , root = '/', mount = ''] = left.split(' ')
    const [type, , options = ''] = right.split(' ')
    /** Returns the folder of this process's group in the mount. */
    const folder = (path?: string): string | undefined => {
      if (path === undefined) return undefined
      if (root === '/') return join(mount, path)
      // In a container, the mount contains only the part of the hierarchy below `root`.
      return path.startsWith(root) ? join(mount, path.slice(root.length)) : mount
    }
    if (type === 'cgroup2') second ??= folder(paths.get(''))
    if (type === 'cgroup')
      for (const name of controllers) {
        const path = options.split(',').includes(name) ? folder(paths.get(name)) : undefined
        if (path !== undefined) first[name] ??= path
      }
  }
  return [
    ...(second === undefined
      ? []
      : [{ version: 2 as const, folders: { memory: second, pids: second, cpu: second } }]),
    { version: 1, folders: first },
  ]
}

/** Returns the files that set a limit, in the order in which they are written. */
export function settingsOf(
  version: 1 | 2,
  controller: Controller,
  { memory_bytes, processes, cpus }: ResourceLimits,
): readonly { readonly file: string; readonly value: string; readonly optional?: true }[] {
  const quota = Math.max(1000, Math.round(cpus * PERIOD_US))
  switch (controller) {
    case 'pids':
      return [{ file: 'pids.max', value: String(processes) }]
    case 'memory':
      return version === 2
        ? [
            { file: 'memory.max', value: String(memory_bytes) },
            { file: 'memory.swap.max', value: '0', optional: true },
          ]
        : [
            { file: 'memory.limit_in_bytes', value: String(memory_bytes) },
            // This file limits memory and swap together. It is absent if the kernel does not count
            // swap.
            { file: 'memory.memsw.limit_in_bytes', value: String(memory_bytes), optional: true },
          ]
    case 'cpu':
      return version === 2
        ? [{ file: 'cpu.max', value: `${quota} ${PERIOD_US}` }]
        : [
            { file: 'cpu.cfs_period_us', value: String(PERIOD_US) },
            { file: 'cpu.cfs_quota_us', value: String(quota) },
          ]
  }
}

/** Writes a file of a control group. The file exists if its controller works. */
const set = (path: string, value: string): Promise<void> => writeFile(path, value, { flag: 'r+' })

/**
 * Enables the controllers of version 2 for groups below `folder`. If the kernel refuses this
 * because the group itself contains processes, they are moved to a group below it. Resolves with
 * false when the controllers cannot be enabled.
 */
async function delegate(folder: string): Promise<boolean> {
  const offered = (await read(join(folder, 'cgroup.controllers'))).trim().split(/\s+/)
  if (!controllers.every((name) => offered.includes(name))) return false
  const enable = () => set(join(folder, 'cgroup.subtree_control'), '+memory +pids +cpu')
  try {
    await enable()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') return false
    try {
      const own = join(folder, 'host')
      await mkdir(own, { recursive: true })
      for (const pid of (await read(join(folder, 'cgroup.procs'))).trim().split('\n'))
        if (pid !== '') await set(join(own, 'cgroup.procs'), pid).catch(() => {})
      await enable()
    } catch {
      return false
    }
  }
  return true
}

async function remove(folder: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await rmdir(folder)
      return
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return
      // A group is busy until the kernel has released the memory of its ended processes.
      if (code !== 'EBUSY' || tries >= REMOVE_TRIES) throw error
      await sleep(REMOVE_WAIT_MS)
    }
  }
}

/**
 * Creates the parent groups of one hierarchy. Resolves with undefined if none of its controllers is
 * usable.
 * @param name the name of the parent group of the workers' groups.
 */
async function open(
  { version, folders }: Hierarchy,
  name: string,
  limits: ResourceLimits,
): Promise<Groups | undefined> {
  const usable = new Map<Controller, string>()
  for (const controller of controllers) {
    const folder = folders[controller]
    if (folder === undefined) continue
    const base = join(folder, name)
    try {
      if (version === 2 && !(await delegate(folder))) continue
      await mkdir(base, { recursive: true })
      if (version === 2 && !(await delegate(base))) continue
      const probe = join(base, 'probe')
      await mkdir(probe, { recursive: true })
      for (const { file, value, optional } of settingsOf(version, controller, limits))
        if (!optional) await set(join(probe, file), value)
      await remove(probe)
      usable.set(controller, base)
    } catch {
      await rmdir(base).catch(() => {})
    }
  }
  if (usable.size === 0) return undefined
  const bases = [...new Set(usable.values())]

  return {
    version,
    controllers: [...usable.keys()],
    async create(worker, wanted) {
      const groups = bases.map((base) => join(base, worker))
      for (const group of groups) await mkdir(group, { recursive: true })
      for (const [controller, base] of usable)
        for (const { file, value, optional } of settingsOf(version, controller, wanted)) {
          const done = set(join(base, worker, file), value)
          await (optional ? done.catch(() => {}) : done)
        }
      const memory = usable.get('memory')
      return {
        join: groups.map((group) => join(group, 'cgroup.procs')),
        oomKills: async () => {
          if (memory === undefined) return 0
          const file = version === 2 ? 'memory.events' : 'memory.oom_control'
          const text = await read(join(memory, worker, file))
          return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0)
        },
        remove: async () => {
          for (const group of groups) await remove(group)
        },
      }
    },
    async close() {
      for (const base of bases) await remove(base).catch(() => {})
    },
    async clear() {
      for (const base of bases)
        for (const entry of await readdir(base, { withFileTypes: true }))
          if (entry.isDirectory()) await remove(join(base, entry.name))
    },
  }
}

/**
 * Finds the control groups that this process may use.
 * @param name the name of the parent group of the workers' groups.
 * @param found the hierarchies to use instead of those of this machine, for tests.
 */
export async function openGroups(
  name: string,
  limits: ResourceLimits,
  found?: readonly Hierarchy[],
): Promise<Groups | undefined> {
  for (const hierarchy of found ?? (await hierarchies())) {
    const groups = await open(hierarchy, name, limits)
    if (groups) return groups
  }
  return undefined
}
