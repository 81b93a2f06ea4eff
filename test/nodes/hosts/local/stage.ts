/**
 * The provider `local` with real processes, for tests: a data folder, a server in place of the
 * gateway, and workers that are shell scripts.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import type { IsolationKind } from '../../../../nodes/hosts/local/isolation.ts'
import { createLocalProvider, type LocalOptions } from '../../../../nodes/hosts/local/provider.ts'
import type { Provider, WorkerExit, WorkerLaunch } from '../../../../nodes/hosts/provider.ts'
import type { HostTask } from '../../../../protocol/environments/commands.ts'
import type { LogName } from '../../../../protocol/environments/schema.ts'

export const PROJECT = 'prj_1'
export const MIB = 2 ** 20
export const limits = {
  memory_bytes: 512 * MIB,
  cpus: 2,
  disk_bytes: 1024 * MIB,
  processes: 100,
} as const
const isLinux = process.platform === 'linux'
const isRoot = process.getuid?.() === 0
const works = (program: string, args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore', timeout: 10_000 }).status === 0

/**
 * Returns the nearest enclosing folder that other users cannot enter, such as one created by
 * `mktemp -d`. Other users cannot run a program in such a folder. Returns undefined if they can
 * enter all enclosing folders.
 */
function closedFolder(): string | undefined {
  for (let path = import.meta.dirname; ; path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) return path
    if (path === '/') return undefined
  }
}
const closed = closedFolder()

/**
 * The reason why the tests of a kind of isolation are skipped on this machine; false if they run.
 */
export const skipped: Readonly<Record<IsolationKind, string | false>> = {
  sandbox:
    !works('bwrap', ['--unshare-pid', '--unshare-net', '--ro-bind', '/', '/', '/bin/true']) &&
    'bubblewrap (bwrap) is not installed or does not work here',
  user:
    (!(isLinux && isRoot) && 'another user requires root on Linux') ||
    (closed !== undefined && `other users cannot enter ${closed}, which contains this project`),
  none: !isLinux && 'processes are found in /proc',
}

export const task = (environment_id: string, kind: HostTask['kind'] = 'start'): HostTask => ({
  operation: 1,
  kind,
  project: PROJECT,
  environment_id,
  name: 'one',
  provider: 'local',
  repositories: [],
})
const signal = new AbortController().signal

export async function openLocal(options: LocalOptions): Promise<Provider> {
  const provider = await createLocalProvider(options)
  if ('unavailable' in provider) throw new Error(provider.unavailable)
  return provider
}
/** Creates a data folder with the mode of a node's folder. The folder is removed after the test. */
export function dataFolder(t: Test): string {
  const data = mkdtempSync(join(tmpdir(), 'baton-local-'))
  chmodSync(data, 0o700)
  t.teardown(() => rmSync(data, { recursive: true, force: true, maxRetries: 3 }))
  return data
}
/**
 * Starts a server in place of the gateway, which answers with the method, the path and `Host`.
 * Returns its URL.
 */
async function gateway(t: Test): Promise<string> {
  const server = createServer((request, response) =>
    response.end(`gateway: ${request.method} ${request.url} for ${request.headers.host}`),
  )
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Opens a provider of one kind. Returns it with helpers that run scripts as workers. */
export async function stage(t: Test, kind: IsolationKind, more: Partial<LocalOptions> = {}) {
  const data = more.data ?? dataFolder(t)
  const gateway_url = await gateway(t)
  const warnings: string[] = []
  const provider = await openLocal({
    data,
    limits,
    unsafe: kind === 'none',
    kinds: [kind],
    warn: (sentence) => void warnings.push(sentence),
    ...more,
  })
  t.teardown(() => provider.close())
  const waiting = new Map<string, (exit: WorkerExit) => void>()
  const early = new Map<string, WorkerExit>()
  const keyOf = (id: string, generation: number) => `${id} ${generation}`
  provider.onExit((exit) => {
    const key = keyOf(exit.environment_id, exit.generation)
    const found = waiting.get(key)
    if (found) found(exit)
    else early.set(key, exit)
  })
  /** Resolves when the worker has exited without having been stopped. */
  const exitOf = (id: string, generation = 1): Promise<WorkerExit> =>
    new Promise((done) => {
      const exit = early.get(keyOf(id, generation))
      if (exit) done(exit)
      else waiting.set(keyOf(id, generation), done)
    })
  const log = async (id: string, log_name: LogName = 'stdout') =>
    (await provider.logs(id, { log_name, tail: 5000, max_bytes: 128_000 }))?.content ?? ''
  const provision = (id: string) => provider.provision(task(id, 'provision'), signal)
  const start = (id: string, script: string, launch: Partial<WorkerLaunch> = {}) =>
    provider.startWorker(
      task(id),
      {
        generation: 1,
        command: ['/bin/sh', '-c', script],
        variables: { ACME_API_KEY: 'credential-of-the-worker' },
        gateway_url,
        url_variable: 'ACME_API_URL',
        workspace_variable: 'ACME_RUNTIME_WORKSPACE',
        log_variable: 'ACME_WORKER_LOG_DIR',
        allowed_hosts: [],
        ...launch,
      },
      signal,
    )
  /** Runs a script to completion in a new environment. Returns its output and its exit. */
  const run = async (id: string, script: string, launch: Partial<WorkerLaunch> = {}) => {
    await provision(id)
    await start(id, script, launch)
    const exit = await exitOf(id, launch.generation)
    return { exit, output: await log(id), errors: await log(id, 'stderr') }
  }
  return { data, gateway_url, provider, warnings, exitOf, log, provision, start, run }
}

/** Polls every 20 ms until the condition holds. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((later) => setTimeout(later, 20))
}

/** Whether a program is installed. Tests that need a missing program are skipped. */
export const has = (program: string): boolean =>
  works('/bin/sh', ['-c', `command -v ${program} >/dev/null`])

/**
 * Returns the ids of the processes with these consecutive arguments. The first and the last text
 * may be parts of arguments.
 */
export const processesWith = (...args: readonly string[]): readonly string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(args.join('\0'))
      )
    } catch {
      return false
    }
  })
