/**
 * The `local` provider: each environment is a folder on this machine with a supervised worker
 * process, in a sandbox if possible. Workers end when the host process ends, but environments
 * remain.
 *
 * Invariants:
 * W1. The operations of one environment run one after the other.
 * W2. The environment variables of a worker are those of its launch and of the provider (`run.ts`),
 *     never those of the host.
 * W3. Where the host can use other users, each environment has a separate user, which has no other
 *     processes on the machine.
 */
import { randomInt } from 'node:crypto'
import { chown, realpath } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostTask } from '../../../protocol/environments/commands.ts'
import { createGuard } from '../../outbound/guard.ts'
import { letOthersEnter } from '../../storage/private.ts'
import { type Provider, ProviderFault, type WorkerExit, type WorkerLaunch } from '../provider.ts'
import { sizeOf } from './disk.ts'
import { type Control, createFolder, type Folders, openFolders } from './folders.ts'
import { describe, type IsolationKind, isolationKinds, openIsolation } from './isolation.ts'
import { openGroups, type ResourceLimits } from './limits.ts'
import { openLog, tailOf } from './logs.ts'
import { type Belonging, endProcesses, MARKER } from './processes.ts'
import { type Running, runWorker, type SharedResources } from './run.ts'

export interface LocalOptions {
  /** Folder for all data of the node. */
  readonly data: string
  readonly limits: ResourceLimits
  /** Whether workers may run without any isolation. */
  readonly unsafe: boolean
  /** Networks in which repository hosts may be, in addition to public addresses. */
  readonly allowed_networks?: readonly string[]
  /** Receives warnings for the operator. */
  warn?(sentence: string): void
  /** The kinds of isolation to try, best first; all of them by default. */
  readonly kinds?: readonly IsolationKind[]
  /** Whether control groups may be used; true by default. */
  readonly groups?: boolean
  /** Minimum pause in milliseconds between two measurements of an environment's disk usage. */
  readonly measure_ms?: number
}

/** Milliseconds after which workers that have not ended are killed when the host stops. */
const STOP_TIMEOUT_MS = 3000

const program = fileURLToPath(new URL('./inside.mjs', import.meta.url))

/** Returns a function that runs the operations of each environment one after the other. */
function createQueue() {
  const last = new Map<string, Promise<unknown>>()
  return <T>(id: string, work: () => Promise<T>): Promise<T> => {
    const done = (last.get(id) ?? Promise.resolve()).then(work)
    const settled: Promise<unknown> = done
      .catch(() => {})
      .then(() => {
        if (last.get(id) === settled) last.delete(id)
      })
    last.set(id, settled)
    return done
  }
}

/**
 * Opens the provider. Ends the processes that an earlier process of the host left behind.
 * @returns the provider, or why it is unavailable, with advice for the operator.
 */
export async function createLocalProvider(
  options: LocalOptions,
): Promise<Provider | { readonly unavailable: string }> {
  const { limits } = options
  const found = await openFolders(resolve(options.data))
  if ('unavailable' in found) return found
  const folders: Folders = found
  const root = await realpath(folders.root)
  const groups =
    options.groups === false
      ? undefined
      : await openGroups(`baton-${folders.place.slice('local/'.length)}`, limits)
  const opened = await openIsolation({
    root,
    kinds: options.kinds ?? isolationKinds,
    program,
    unsafe: options.unsafe,
    limits,
    groups,
  })
  if (!('isolation' in opened)) {
    await groups?.close()
    await folders.release()
    return {
      unavailable:
        `${opened.missing.join('; ')}. Install bubblewrap (Debian: apt install bubblewrap), ` +
        'or set BATON_UNSAFE_LOCAL=1 on a machine for development',
    }
  }
  const { isolation } = opened
  const isolationText = describe(isolation, limits, groups)
  if (isolation.kind !== 'sandbox')
    options.warn?.(
      `Workers of environments run without a sandbox. ${opened.missing.map((one) => `${one}. `).join('')}` +
        `Current isolation: ${isolationText}.` +
        (isolation.kind === 'none'
          ? ' Workers can read the data folder and all keys of this installation.'
          : ''),
    )

  const belonging = ({
    environment_id,
    uid,
  }: Pick<Control, 'environment_id' | 'uid'>): Belonging => ({
    marker: `${MARKER}=${folders.place}/${environment_id}/`,
    ...(uid !== undefined && { uid }),
  })
  const shared: SharedResources = {
    root,
    name: folders.place,
    isolation,
    groups,
    limits,
    guard: createGuard(options.allowed_networks ?? []),
    program,
    ...(options.measure_ms !== undefined && { measure_ms: options.measure_ms }),
    belonging,
  }
  const running = new Map<string, Running>()
  const inOrder = createQueue()
  let listener: (exit: WorkerExit) => void = () => {}

  // Workers that are still running belong to an earlier process of the host.
  await endProcesses({ marker: `${MARKER}=${folders.place}/` })
  for (const control of await folders.list()) {
    await endProcesses(belonging(control))
    const { generation: _, supervisor: __, ...rest } = control
    if (control.generation !== undefined) await folders.write(rest)
  }
  await groups?.clear()
  await folders.removeRemains()

  /**
   * Adds a line to the provider's log of an environment. Ignores failures, because a full disk must
   * not stop the work.
   */
  async function note(environment_id: string, line: string): Promise<void> {
    try {
      const log = await openLog(join(folderOf(environment_id), 'logs', 'bootstrap.log'))
      await log.write(Buffer.from(`${new Date().toISOString()} ${line}\n`))
      await log.close()
    } catch {
      // The disk may be full, or the folder may have been removed.
    }
  }
  const folderOf = (environment_id: string): string => {
    folders.of(environment_id)
    return join(root, environment_id)
  }
  /** Ends the worker of an environment and all of its descendants. */
  async function endWorker(control: Control): Promise<void> {
    const one = running.get(control.environment_id)
    one?.end()
    await one?.finished
    await endProcesses(belonging(control))
  }
  async function remove(environment_id: string): Promise<void> {
    const control = await folders.read(environment_id)
    if (control) await endWorker(control)
    await folders.remove(environment_id)
  }
  /**
   * Returns a random user id that no other environment has; undefined if workers run as the user of
   * the host.
   */
  async function newUid(): Promise<number | undefined> {
    if (!isolation.uids) return undefined
    const used = new Set((await folders.list()).map(({ uid }) => uid))
    const { first, count } = isolation.uids
    for (;;) {
      const uid = first + randomInt(count)
      if (!used.has(uid)) return uid
    }
  }

  /**
   * With `user` isolation, gives every user the execute permission on the parent folders, so that
   * the users of environments can enter their own folders but not list other folders. Workers need
   * this permission, because they use the paths of the host. Called whenever a workspace is
   * prepared or a worker is started, because each start of the node removes the permission.
   */
  function letUsersEnter(): void {
    if (isolation.kind !== 'user') return
    for (const path of [dirname(root), root]) letOthersEnter(path)
  }
  async function prepare({ project, environment_id }: HostTask): Promise<void> {
    await remove(environment_id)
    const uid = await newUid()
    const folder = folderOf(environment_id)
    const isOpen = isolation.kind === 'user'
    letUsersEnter()
    await createFolder(folder, isOpen ? 0o711 : 0o700)
    await createFolder(join(folder, 'logs'), 0o700)
    await createFolder(join(folder, 'net'), 0o755)
    const own = isolation.kind === 'sandbox' ? [] : ['home', 'tmp']
    for (const name of ['workspace', 'worker', 'worker/logs', ...own]) {
      await createFolder(join(folder, name), 0o700)
      if (uid !== undefined) await chown(join(folder, name), uid, uid)
    }
    await folders.write({ project, environment_id, ...(uid !== undefined && { uid }) })
    await note(environment_id, `workspace created; ${isolationText}`)
  }

  async function start(task: HostTask, launch: WorkerLaunch, signal: AbortSignal): Promise<void> {
    const { environment_id } = task
    const control = await folders.read(environment_id)
    if (!control) throw new ProviderFault('The workspace of the environment is not on this host.')
    await endWorker(control)
    const used = await sizeOf(folderOf(environment_id))
    if (used !== undefined && used > limits.disk_bytes)
      throw new ProviderFault(
        `The files of the environment use ${used} bytes, more than the limit of ` +
          `${limits.disk_bytes}. The worker is not started.`,
      )
    letUsersEnter()
    const { generation: _, supervisor: __, ...base } = control
    const one = await runWorker({
      shared,
      control: base,
      launch,
      signal,
      note: (line) => void note(environment_id, line),
      finish: async (exit) => {
        running.delete(environment_id)
        // The end is reported even if the disk is full. Facts about an ended worker are harmless.
        await folders.write(base).catch(() => {})
        if (exit) listener(exit)
      },
    })
    running.set(environment_id, one)
    try {
      await folders.write({ ...base, generation: launch.generation, supervisor: one.id })
      // The end of the worker is noted only after `watch`, so this line comes first.
      await note(environment_id, `worker ${launch.generation} started`)
    } finally {
      one.watch()
    }
  }

  return {
    name: 'local',
    place: folders.place,
    isolation: isolationText,
    provision: (task) => inOrder(task.environment_id, () => prepare(task)),
    startWorker: (task, launch, signal) =>
      inOrder(task.environment_id, async () => {
        try {
          await start(task, launch, signal)
        } catch (error) {
          const reason = error instanceof ProviderFault ? error.message : 'internal error'
          await note(task.environment_id, `worker ${launch.generation} not started: ${reason}`)
          throw error
        }
      }),
    destroy: (environment_id) => inOrder(environment_id, () => remove(environment_id)),
    async logs(environment_id, { log_name, ...end }) {
      if (!(await folders.read(environment_id))) return undefined
      const folder = join(folderOf(environment_id), log_name === 'worker' ? 'worker/logs' : 'logs')
      return tailOf(join(folder, `${log_name}.log`), end)
    },
    inspect: async () =>
      (await folders.list()).map(({ project, environment_id }) => {
        const one = running.get(environment_id)
        return { project, environment_id, ...(one && { generation: one.generation }) }
      }),
    onExit(on) {
      listener = on
    },
    async close() {
      const all = [...running.values()]
      for (const one of all) one.stop()
      const timer = setTimeout(() => {
        for (const one of all) one.end()
      }, STOP_TIMEOUT_MS)
      await Promise.all(all.map(({ finished }) => finished))
      clearTimeout(timer)
      await groups?.close()
      await folders.release()
    },
  }
}
