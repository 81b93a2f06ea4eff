/**
 * The environments of the `local` provider. Workers end when the host process ends, but environments
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
import { chown } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostTask } from '../../../protocol/environments/commands.ts'
import { letOthersEnter } from '../../storage/private.ts'
import {
  type LogRequest,
  type Presence,
  type Provider,
  ProviderFault,
  type WorkerExit,
  type WorkerLaunch,
} from '../provider.ts'
import { sizeOf } from './disk.ts'
import { type Control, createFolder, type Folders } from './folders.ts'
import { openLog, tailOf } from './logs.ts'
import { belongingTo, endProcesses } from './processes.ts'
import { type Running, runWorker, type SharedResources } from './run.ts'

/** Milliseconds after which workers that have not ended are killed when the host stops. */
const STOP_TIMEOUT_MS = 3000

/** Runs the tasks with the same id one after the other. */
class SerialQueue {
  readonly #last = new Map<string, Promise<unknown>>()

  run<T>(id: string, task: () => Promise<T>): Promise<T> {
    const done = (this.#last.get(id) ?? Promise.resolve()).then(task)
    const settled: Promise<unknown> = done
      .catch(() => {})
      .then(() => {
        if (this.#last.get(id) === settled) this.#last.delete(id)
      })
    this.#last.set(id, settled)
    return done
  }
}

export class LocalEnvironments implements Provider {
  readonly name = 'local'
  readonly place: string
  readonly sole = true
  readonly isolation: string
  readonly #folders: Folders
  readonly #shared: SharedResources
  readonly #running = new Map<string, Running>()
  readonly #operations = new SerialQueue()
  #onExit: (exit: WorkerExit) => void = () => {}

  /** @param isolation describes the isolation and the limits for administrators. */
  constructor(folders: Folders, shared: SharedResources, isolation: string) {
    this.place = folders.place
    this.isolation = isolation
    this.#folders = folders
    this.#shared = shared
  }
  provision(task: HostTask): Promise<void> {
    return this.#operations.run(task.environment_id, () => this.#prepare(task))
  }
  startWorker(task: HostTask, launch: WorkerLaunch, signal: AbortSignal): Promise<void> {
    return this.#operations.run(task.environment_id, async () => {
      try {
        await this.#start(task, launch, signal)
      } catch (error) {
        const reason = error instanceof ProviderFault ? error.message : 'internal error'
        await this.#note(task.environment_id, `worker ${launch.generation} not started: ${reason}`)
        throw error
      }
    })
  }
  destroy(environment_id: string): Promise<void> {
    return this.#operations.run(environment_id, () => this.#remove(environment_id))
  }
  async logs(environment_id: string, { log_name, ...end }: LogRequest) {
    if (!(await this.#folders.read(environment_id))) return undefined
    const logs = log_name === 'worker' ? 'worker/logs' : 'logs'
    return tailOf(join(this.#folderOf(environment_id), logs, `${log_name}.log`), end)
  }
  async inspect(): Promise<readonly Presence[]> {
    return (await this.#folders.list()).map(({ project, environment_id }) => {
      const worker = this.#running.get(environment_id)
      return { project, environment_id, ...(worker && { generation: worker.generation }) }
    })
  }
  onExit(listener: (exit: WorkerExit) => void): void {
    this.#onExit = listener
  }
  async close(): Promise<void> {
    const workers = [...this.#running.values()]
    for (const worker of workers) worker.stop()
    const timer = setTimeout(() => {
      for (const worker of workers) worker.end()
    }, STOP_TIMEOUT_MS)
    await Promise.all(workers.map(({ finished }) => finished))
    clearTimeout(timer)
    await this.#shared.groups?.close()
    await this.#folders.release()
  }

  #folderOf(environment_id: string): string {
    // Throws ProviderFault if the id is invalid.
    this.#folders.of(environment_id)
    return join(this.#shared.root, environment_id)
  }
  /**
   * Adds a line to the provider's log of an environment. Ignores failures, because a full disk must
   * not stop the work.
   */
  async #note(environment_id: string, line: string): Promise<void> {
    try {
      const log = await openLog(join(this.#folderOf(environment_id), 'logs', 'bootstrap.log'))
      await log.write(Buffer.from(`${new Date().toISOString()} ${line}\n`))
      await log.close()
    } catch {
      // The disk may be full, or the folder may have been removed.
    }
  }
  /**
   * With `user` isolation, gives every user the execute permission on the parent folders, so that
   * the users of environments can enter their own folders but not list other folders. Workers need
   * this permission, because they use the paths of the host. Called whenever a workspace is
   * prepared or a worker is started, because each start of the node removes the permission.
   */
  #letUsersEnter(): void {
    const { isolation, root } = this.#shared
    if (isolation.kind !== 'user') return
    for (const path of [dirname(root), root]) letOthersEnter(path)
  }

  async #prepare({ project, environment_id }: HostTask): Promise<void> {
    const { kind } = this.#shared.isolation
    await this.#remove(environment_id)
    const uid = await this.#newUid()
    const folder = this.#folderOf(environment_id)
    this.#letUsersEnter()
    await createFolder(folder, kind === 'user' ? 0o711 : 0o700)
    await createFolder(join(folder, 'logs'), 0o700)
    await createFolder(join(folder, 'net'), 0o755)
    const own = kind === 'sandbox' ? [] : ['home', 'tmp']
    for (const name of ['workspace', 'worker', 'worker/logs', ...own]) {
      await createFolder(join(folder, name), 0o700)
      if (uid !== undefined) await chown(join(folder, name), uid, uid)
    }
    await this.#folders.write({ project, environment_id, ...(uid !== undefined && { uid }) })
    await this.#note(environment_id, `workspace created; ${this.isolation}`)
  }
  /**
   * Returns a random user id that no other environment has; undefined if workers run as the user of
   * the host.
   */
  async #newUid(): Promise<number | undefined> {
    const { uids } = this.#shared.isolation
    if (!uids) return undefined
    const used = new Set((await this.#folders.list()).map(({ uid }) => uid))
    for (;;) {
      const uid = uids.first + randomInt(uids.count)
      if (!used.has(uid)) return uid
    }
  }

  async #start(task: HostTask, launch: WorkerLaunch, signal: AbortSignal): Promise<void> {
    const { environment_id } = task
    const control = await this.#folders.read(environment_id)
    if (!control) throw new ProviderFault('The workspace of the environment is not on this host.')
    await this.#endWorker(control)
    await this.#requireSpace(environment_id)
    this.#letUsersEnter()
    const { generation: _, supervisor: __, ...base } = control
    const worker = await runWorker({
      shared: this.#shared,
      control: base,
      launch,
      signal,
      note: (line) => void this.#note(environment_id, line),
      finish: async (exit) => {
        this.#running.delete(environment_id)
        // The end is reported even if the disk is full. Facts about an ended worker are harmless.
        await this.#folders.write(base).catch(() => {})
        if (exit) this.#onExit(exit)
      },
    })
    this.#running.set(environment_id, worker)
    try {
      const { generation } = launch
      await this.#folders.write({ ...base, generation, supervisor: worker.id })
      // The end of the worker is noted only after `watch`, so this line comes first.
      await this.#note(environment_id, `worker ${generation} started`)
    } finally {
      worker.watch()
    }
  }
  /** @throws ProviderFault if the files of the environment exceed their limit. */
  async #requireSpace(environment_id: string): Promise<void> {
    const { disk_bytes } = this.#shared.limits
    const used = await sizeOf(this.#folderOf(environment_id))
    if (used !== undefined && used > disk_bytes)
      throw new ProviderFault(
        `The files of the environment use ${used} bytes, more than the limit of ` +
          `${disk_bytes}. The worker is not started.`,
      )
  }
  /** Ends the worker of an environment and all of its descendants. */
  async #endWorker(control: Control): Promise<void> {
    const worker = this.#running.get(control.environment_id)
    worker?.end()
    await worker?.finished
    await endProcesses(belongingTo(this.place, control))
  }
  async #remove(environment_id: string): Promise<void> {
    const control = await this.#folders.read(environment_id)
    if (control) await this.#endWorker(control)
    await this.#folders.remove(environment_id)
  }
}
