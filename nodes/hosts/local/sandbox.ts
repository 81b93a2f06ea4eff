/**
 * Builds the command that starts a process in a bubblewrap sandbox. The process sees the programs
 * of the system, the files of the worker program, its workspace and its own folder. It sees nothing
 * else of the host: no other processes, no data folder, no network except the sockets of its relay.
 *
 * A host that runs as root starts bubblewrap as root, and the process runs as a separate user. This
 * works on systems that forbid user namespaces of unprivileged users. Any other host starts
 * bubblewrap with a user namespace, in which the process has the user id 1000.
 */
import { existsSync, lstatSync, readlinkSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { GATEWAY_SOCKET, PROXY_SOCKET } from './relay.ts'

/** Paths and ports inside a sandbox. */
export const SANDBOX = {
  workspace: '/workspace',
  worker: '/var/worker',
  logs: '/var/worker/logs',
  home: '/home/worker',
  sockets: '/run/sockets',
  program: '/run/inside.mjs',
  gateway_port: 18_480,
  proxy_port: 18_481,
} as const
/** The user id in a sandbox of a host that does not run as root. */
const SANDBOX_UID = 1000
/** Descriptor from which bubblewrap reads the seccomp filter. */
const SECCOMP_FD = 3

export interface Tools {
  readonly bwrap?: string
  readonly setpriv?: string
  readonly prlimit?: string
}
export interface SandboxParts {
  readonly tools: Tools
  /** Folder of the environment on the host. */
  readonly folder: string
  /** User id of the environment. If absent, a user namespace is used. */
  readonly uid?: number
  /** Folders and files that the process may read, at the same paths as on the host. */
  readonly readable: readonly string[]
  /** Folder that the process must not see, even if a readable folder contains it. */
  readonly hidden: string
  /** The file `inside.mjs` on the host. */
  readonly program: string
  /** Maximum size of each file system in memory, in bytes. */
  readonly memory_files: number
  /** Whether the descriptor `SECCOMP_FD` provides a filter. */
  readonly seccomp: boolean
}

/** Folders of programs and libraries. Symbolic links among them are recreated in the sandbox. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']
/** Files of /etc that programs need and that contain no secrets. */
const CONFIGURATION = [
  '/etc/alternatives',
  '/etc/ca-certificates',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/localtime',
  '/etc/mime.types',
  '/etc/pki/ca-trust/extracted',
  '/etc/pki/tls/certs',
  '/etc/ssl/cert.pem',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
]
/** Names of the files that are written for each environment. */
const WRITTEN = ['passwd', 'group', 'hosts', 'nsswitch.conf', 'gitconfig']

/** Writes the files that a sandbox has in /etc instead of those of the host. */
export async function writeConfiguration(folder: string, uid = SANDBOX_UID): Promise<void> {
  const contents: Readonly<Record<string, string>> = {
    passwd:
      'root:x:0:0:root:/:/usr/sbin/nologin\n' +
      `worker:x:${uid}:${uid}:worker:${SANDBOX.home}:/bin/bash\n` +
      'nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n',
    group: `root:x:0:\nworker:x:${uid}:\nnogroup:x:65534:\n`,
    hosts: '127.0.0.1 localhost environment\n::1 localhost\n',
    'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
    gitconfig: `[http]\n\tproxy = http://127.0.0.1:${SANDBOX.proxy_port}\n`,
  }
  await rm(join(folder, 'etc'), { recursive: true, force: true })
  await mkdir(join(folder, 'etc'), { mode: 0o700 })
  for (const name of WRITTEN)
    await writeFile(join(folder, 'etc', name), contents[name] ?? '', { mode: 0o644 })
}

/** The ports that `inside.mjs` forwards in a sandbox. */
export const forwards = [
  { port: SANDBOX.gateway_port, path: `${SANDBOX.sockets}/${GATEWAY_SOCKET}` },
  { port: SANDBOX.proxy_port, path: `${SANDBOX.sockets}/${PROXY_SOCKET}` },
] as const

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
/**
 * Returns the arguments that create the parent folders of paths. Otherwise bubblewrap would create
 * the parent folders of files with mode 0700, and users other than root could not enter them.
 */
function foldersAbove(paths: readonly string[]): readonly string[] {
  const above = new Set<string>()
  for (const path of paths) {
    const names = path.split('/').slice(1, -1)
    for (const index of names.keys()) above.add(`/${names.slice(0, index + 1).join('/')}`)
  }
  return [...above].flatMap((path) => ['--perms', '0755', '--dir', path])
}
const readOnly = (path: string, at = path): readonly string[] => ['--ro-bind', path, at]

/**
 * Returns the prefix of a command that runs a program in a sandbox. The arguments contain no
 * secrets, because other users can see them.
 */
export function sandboxCommand(parts: SandboxParts): readonly string[] {
  const { tools, folder, uid, hidden } = parts
  const system = SYSTEM.filter((path) => existsSync(path)).flatMap((path) =>
    lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : readOnly(path),
  )
  const readable = [
    ...CONFIGURATION.filter((path) => existsSync(path)),
    ...parts.readable.filter((path) => !SYSTEM.some((one) => isBelow(path, one))),
  ]
  const inMemory = (path: string) => [
    '--perms',
    '1777',
    '--size',
    String(parts.memory_files),
    '--tmpfs',
    path,
  ]
  const mounted = [
    SANDBOX.workspace,
    SANDBOX.worker,
    SANDBOX.home,
    SANDBOX.sockets,
    SANDBOX.program,
  ]
  const containsHidden = [...SYSTEM, ...readable].some((path) => isBelow(hidden, path))
  const identity =
    uid === undefined
      ? ['--unshare-user', '--uid', String(SANDBOX_UID), '--gid', String(SANDBOX_UID)]
      : ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap((name) => ['--cap-add', name])
  return [
    tools.bwrap ?? 'bwrap',
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-net'],
    ...['--unshare-cgroup-try', '--hostname', 'environment', '--die-with-parent'],
    ...['--new-session', '--cap-drop', 'ALL', ...identity],
    ...system,
    // /tmp is mounted before the readable folders, which may be below /tmp.
    ...inMemory('/tmp'),
    ...foldersAbove([...readable, ...mounted, '/etc/passwd']),
    ...readable.flatMap((path) => readOnly(path)),
    ...(containsHidden ? ['--tmpfs', hidden, '--remount-ro', hidden] : []),
    ...WRITTEN.flatMap((name) => readOnly(join(folder, 'etc', name), `/etc/${name}`)),
    ...['--proc', '/proc', '--dev', '/dev', ...inMemory('/dev/shm'), '--remount-ro', '/dev'],
    ...inMemory(SANDBOX.home),
    ...['--bind', join(folder, 'workspace'), SANDBOX.workspace],
    ...['--bind', join(folder, 'worker'), SANDBOX.worker],
    ...readOnly(join(folder, 'net'), SANDBOX.sockets),
    ...readOnly(parts.program, SANDBOX.program),
    ...['--remount-ro', '/', '--chdir', '/'],
    ...(parts.seccomp ? ['--seccomp', String(SECCOMP_FD)] : []),
    '--',
    ...(uid === undefined ? [] : userCommand(tools, uid)),
  ]
}
/** Returns the prefix of a command that runs a program as another user, without capabilities. */
export const userCommand = ({ setpriv = 'setpriv' }: Tools, uid: number): readonly string[] => [
  ...[setpriv, `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs'],
  ...['--inh-caps=-all', '--bounding-set=-all', '--'],
]
