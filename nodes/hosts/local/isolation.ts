/**
 * Chooses the best kind of isolation that works on this machine, by trying each kind.
 *
 *     sandbox  bubblewrap; see `sandbox.ts`
 *     user     a separate user for each environment, if the host runs as root
 *     none     a plain process, only if the operator allows it
 */
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { type FileHandle, mkdir, open, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { createFolder } from './folders.ts'
import type { Groups, ResourceLimits } from './limits.ts'
import { sandboxCommand, type Tools, userCommand, writeConfiguration } from './sandbox.ts'
import { seccompProgram } from './seccomp.ts'

export type IsolationKind = 'sandbox' | 'user' | 'none'
export const isolationKinds: readonly IsolationKind[] = ['sandbox', 'user', 'none']
interface UidRange {
  readonly first: number
  readonly count: number
}
export interface Isolation {
  readonly kind: IsolationKind
  readonly tools: Tools
  /** The user ids of environments. If absent, workers run as the user of the host. */
  readonly uids?: UidRange
  /** File with the seccomp filter; absent if this architecture has no filter. */
  readonly seccomp?: string
}
export interface IsolationParts {
  readonly root: string
  /** The kinds to try, best first. */
  readonly kinds: readonly IsolationKind[]
  /** The file `inside.mjs` on the host. */
  readonly program: string
  /** Whether a plain process is allowed. */
  readonly unsafe: boolean
  readonly limits: ResourceLimits
  readonly groups?: Groups | undefined
}

/** Maximum size of each in-memory file system, in bytes. */
const TMPFS_BYTES = 512 * 2 ** 20
export const memoryFiles = ({ memory_bytes, disk_bytes }: ResourceLimits): number =>
  Math.min(TMPFS_BYTES, Math.floor(memory_bytes / 4), disk_bytes)
/** Maximum number of open files of one process. */
const MAX_OPEN_FILES = 16_384
/**
 * Ranges from which user ids of environments can be taken. The first is above the ids of users, of
 * user namespaces and of systemd. The second is within the 65,536 ids of a container. Each
 * environment gets a random id, because another installation on the same machine may use the same
 * range.
 */
const UID_RANGES: readonly UidRange[] = [
  { first: 1_900_000_000, count: 200_000_000 },
  { first: 30_000, count: 30_000 },
]
/** Maximum duration in milliseconds of an attempt to use a kind of isolation. */
const PROBE_TIMEOUT_MS = 20_000

/** Returns the path of a program; undefined when it is not installed. */
function find(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/sbin', '/bin']
  return folders
    .filter((folder) => folder.startsWith('/'))
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return statSync(path).isFile()
      } catch {
        return false
      }
    })
}
function findTools(): Tools {
  const [bwrap, setpriv, prlimit] = [find('bwrap'), find('setpriv'), find('prlimit')]
  return { ...(bwrap && { bwrap }), ...(setpriv && { setpriv }), ...(prlimit && { prlimit }) }
}
/** Returns the range of user ids for environments that this machine or container provides. */
function findUids(): UidRange | undefined {
  const map = existsSync('/proc/self/uid_map') ? readFileSync('/proc/self/uid_map', 'utf8') : ''
  const ranges = map
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  return UID_RANGES.find(({ first, count: wanted }) =>
    ranges.some(([from = 0, , count = 0]) => from <= first && first + wanted <= from + count),
  )
}

/** Whether the limits of a resource are set with control groups. */
const hasController = (groups: Groups | undefined, name: 'memory' | 'pids' | 'cpu'): boolean =>
  groups?.controllers.includes(name) ?? false
/** Names of the limits: as options of `prlimit`, and as shown in `/proc/self/limits`. */
const NAMES = {
  core: 'core file size',
  fsize: 'file size',
  nofile: 'open files',
  nproc: 'processes',
  data: 'data size',
} as const
type ProcessLimit = keyof typeof NAMES
/**
 * Returns the prefix of a command that limits each process separately. Without control groups,
 * which limit all processes together, these limits are the only ones.
 */
export function limitCommand(
  { tools, kind, uids }: Isolation,
  limits: ResourceLimits,
  groups: Groups | undefined,
): readonly string[] {
  if (!tools.prlimit) return []
  // This limit applies to all processes of a user together. It is therefore set only if no other
  // processes share the user or the user namespace.
  const countsProcesses =
    uids !== undefined || (kind === 'sandbox' && !hasController(groups, 'pids'))
  const all: Readonly<Partial<Record<ProcessLimit, number | false>>> = {
    core: 0,
    fsize: limits.disk_bytes,
    nofile: MAX_OPEN_FILES,
    nproc: countsProcesses && limits.processes,
    // RLIMIT_AS is unsuitable, because V8 reserves much more address space than it uses.
    data: !hasController(groups, 'memory') && limits.memory_bytes,
  }
  // A limit cannot be raised above that of this process.
  const own = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'utf8') : ''
  const highest = (name: ProcessLimit): number =>
    Number(new RegExp(`^Max ${NAMES[name]} +\\S+ +(\\d+)`, 'm').exec(own)?.[1] ?? Infinity)
  return [
    tools.prlimit,
    ...(Object.keys(NAMES) as ProcessLimit[]).flatMap((name) => {
      const wanted = all[name] ?? false
      if (wanted === false) return []
      const value = Math.min(wanted, highest(name))
      return [`--${name}=${value}:${value}`]
    }),
    '--',
  ]
}
/** Returns the prefix of a command that joins control groups before it runs a program. */
export const joinCommand = (files: readonly string[]): readonly string[] =>
  files.length === 0
    ? []
    : [
        ...['/bin/sh', '-c'],
        'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 125; ' +
          'shift; n=$((n-1)); done; exec "$@"',
        ...['sh', String(files.length), ...files],
      ]

/** Runs a command to completion. Resolves with its error, or with undefined when it succeeds. */
function attempt(
  command: readonly string[],
  seccomp: number | undefined,
): Promise<string | undefined> {
  const [program = '', ...args] = command
  return new Promise((done) => {
    const child = spawn(program, args, {
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      stdio: ['ignore', 'ignore', 'pipe', seccomp ?? 'ignore'],
      timeout: PROBE_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
    let text = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(0, 300)
    })
    child.once('error', (error) => done(error.message))
    child.once('close', (code, signal) =>
      done(code === 0 ? undefined : text.trim() || `it ended with ${signal ?? code}`),
    )
  })
}
export interface OpenedIsolation {
  readonly isolation: Isolation
  /** Why better kinds of isolation cannot be used. */
  readonly missing: readonly string[]
}

/**
 * Returns a folder's nearest ancestor that other users cannot enter; undefined if they can enter
 * all ancestors.
 */
function closedAncestor(folder: string): string | undefined {
  for (let path = dirname(folder); ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return path
    if (path === '/') return undefined
  }
}

/**
 * Finds the best kind of isolation that works on this machine. If no kind works, returns only
 * the reasons (`missing`).
 */
export async function openIsolation(
  parts: IsolationParts,
): Promise<OpenedIsolation | { missing: string[] }> {
  const tools = findTools()
  const isRoot = process.getuid?.() === 0
  const uids = isRoot ? findUids() : undefined
  const users = {
    tools,
    ...(uids && { uids }),
  }
  const missing: string[] = []
  /**
   * Functions that each try one kind of isolation. They resolve with the isolation, or with the
   * reason why it cannot be used.
   */
  const tries: Readonly<Record<IsolationKind, () => Promise<Isolation | string>>> = {
    sandbox: async () => {
      if (process.platform !== 'linux') return 'bubblewrap exists for Linux only'
      if (!tools.bwrap) return 'bubblewrap (bwrap) is not installed'
      if (isRoot && !tools.setpriv) return 'setpriv (util-linux) is not installed'
      if (isRoot && !uids) return 'this container has too few user ids'
      const program = seccompProgram(process.arch)
      const seccomp = join(parts.root, 'seccomp.bpf')
      if (program) await writeFile(seccomp, program, { mode: 0o600 })
      const isolation: Isolation = { kind: 'sandbox', ...users, ...(program && { seccomp }) }
      const error = await probe(isolation, parts)
      return error === undefined ? isolation : `bubblewrap does not work here (${error})`
    },
    user: async () => {
      if (!isRoot) return 'only a host that runs as root can use other users'
      if (!tools.setpriv) return 'setpriv (util-linux) is not installed'
      if (!uids) return 'this container has too few user ids'
      const closed = closedAncestor(dirname(parts.root))
      if (closed !== undefined) return `other users cannot enter ${closed}, which contains the data`
      const shut = closedAncestor(parts.program)
      if (shut !== undefined) return `other users cannot enter ${shut}, which contains the program`
      const node = [process.execPath, '--check', parts.program]
      const error = await attempt([...userCommand(tools, uids.first), ...node], undefined)
      return error === undefined
        ? { kind: 'user', ...users }
        : `another user cannot run the worker (${error})`
    },
    none: async () => (parts.unsafe ? { kind: 'none', tools } : 'plain processes are not allowed'),
  }
  for (const kind of parts.kinds) {
    const found = await tries[kind]()
    if (typeof found !== 'string') return { isolation: found, missing }
    missing.push(found)
  }
  return { missing }
}

/**
 * Runs Node.js in a sandbox with the same settings as for a worker. Resolves with the error, if
 * any.
 */
async function probe(isolation: Isolation, parts: IsolationParts): Promise<string | undefined> {
  const folder = join(parts.root, '.probe')
  const { tools, uids } = isolation
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
  try {
    for (const name of ['workspace', 'worker', 'net']) await createFolder(join(folder, name), 0o755)
    await writeConfiguration(folder)
    const filter = await openFilter(isolation)
    try {
      const sandbox = sandboxCommand({
        tools,
        folder,
        ...(uids && { uid: uids.first }),
        readable: [process.execPath],
        hidden: parts.root,
        program: parts.program,
        memory_files: memoryFiles(parts.limits),
        seccomp: filter !== undefined,
      })
      const limits = limitCommand(isolation, parts.limits, parts.groups)
      return await attempt([...sandbox, ...limits, process.execPath, '-e', '0'], filter?.fd)
    } finally {
      await filter?.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
/**
 * Opens the seccomp filter for one start. Every start needs a new descriptor, because bubblewrap
 * reads from the current position of the file.
 */
export const openFilter = async ({ seccomp }: Isolation): Promise<FileHandle | undefined> =>
  seccomp === undefined ? undefined : open(seccomp)

const MIB = 2 ** 20
const size = (bytes: number): string => `${Math.round(bytes / MIB)} MiB`

/** Describes the isolation and the limits that are in force, in one sentence. */
export function describeIsolation(
  { kind, uids, seccomp, tools }: Isolation,
  limits: ResourceLimits,
  groups: Groups | undefined,
): string {
  const user = uids === undefined ? '' : 'a user of its own'
  const how: Readonly<Record<IsolationKind, string>> = {
    sandbox:
      `sandbox (bubblewrap) with ${user || 'a user namespace'}` +
      `${seccomp === undefined ? ', without a seccomp filter' : ' and a seccomp filter'}; ` +
      'network only to the gateway and the hosts of repositories',
    user: `${user} on the host, no sandbox; the network is not isolated`,
    none: 'NO ISOLATION: a process with the rights of the host; the network is not isolated',
  }
  const single = tools.prlimit !== undefined
  const processes = hasController(groups, 'pids') || uids !== undefined || kind === 'sandbox'
  const inForce = [
    hasController(groups, 'memory')
      ? `${size(limits.memory_bytes)} of memory`
      : single && `${size(limits.memory_bytes)} of memory for each process`,
    processes && (hasController(groups, 'pids') || single) && `${limits.processes} processes`,
    hasController(groups, 'cpu') && `${limits.cpus} processors`,
  ].filter((one) => one !== false)
  const by = groups ? `control groups v${groups.version}` : 'resource limits of processes'
  return (
    `${how[kind]}; limits by ${by}: ${inForce.join(', ') || 'none'}; ` +
    `${size(limits.disk_bytes)} of files, measured periodically`
  )
}
