/**
 * An in-memory provider for tests. A `MemoryPlace` contains the environments, like a disk or a
 * container engine, and survives the processes of hosts. Each host of the place has its own
 * provider.
 */
import {
  type Presence,
  type Provider,
  ProviderFault,
  type WorkerExit,
  type WorkerLaunch,
} from '../../nodes/hosts/provider.ts'
import type { HostTask } from '../../protocol/environments/commands.ts'

export interface MemoryProcess {
  kill(): void
}
interface MemoryEnvironment {
  readonly project: string
  worker?: { readonly generation: number; readonly process: MemoryProcess }
}
/**
 * A provision or start that stays pending until the test calls `finish`, or until it is aborted.
 */
interface Held {
  readonly task: HostTask
  readonly signal: AbortSignal
  finish(error?: Error): void
}

export class MemoryPlace {
  readonly name: string
  readonly environments = new Map<string, MemoryEnvironment>()
  /**
   * The provision, start and destroy calls of all providers, in order, such as `provision env_…`.
   */
  readonly calls: string[] = []
  readonly launches: WorkerLaunch[] = []
  /**
   * The operations that were held. While `holds` is true, provisions and starts stay pending, but
   * destructions do not.
   */
  readonly held: Held[] = []
  holds = false
  /** Whether only one process at a time can use the place. */
  sole = false
  /** The error with which operations fail while it is set. */
  fails: Error | undefined
  readonly logs = new Map<string, string>()
  readonly #start: (launch: WorkerLaunch, end: (idle: boolean) => void) => MemoryProcess
  readonly #removals = new Map<string, () => void>()
  readonly #listeners = new Set<(exit: WorkerExit) => void>()

  /**
   * @param start starts the process of a worker, and calls `end` if the process ends on its own.
   */
  constructor(
    name = 'memory/one',
    start: (launch: WorkerLaunch, end: (idle: boolean) => void) => MemoryProcess = () => ({
      kill() {},
    }),
  ) {
    this.name = name
    this.#start = start
  }
  /**
   * Removes an environment's worker and reports its exit, as if its process had exited on its own.
   */
  exit(id: string, idle = false): void {
    const environment = this.environments.get(id)
    const generation = environment?.worker?.generation
    if (!environment || generation === undefined) return
    delete environment.worker
    for (const listener of this.#listeners)
      listener({ project: environment.project, environment_id: id, generation, idle, exit_code: 0 })
  }
  /** Resolves when a provider has removed the environment. */
  removed(id: string): Promise<void> {
    if (!this.environments.has(id)) return Promise.resolve()
    return new Promise((done) => this.#removals.set(id, done))
  }
  /** Creates the provider of one host process. */
  provider(): Provider {
    let listener: (exit: WorkerExit) => void = () => {}
    const step = (what: string, task: HostTask, signal: AbortSignal): Promise<void> => {
      this.calls.push(`${what} ${task.environment_id}`)
      if (this.fails) return Promise.reject(this.fails)
      if (!this.holds) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const finish = (error?: Error) => (error ? reject(error) : resolve())
        this.held.push({ task, signal, finish })
        signal.addEventListener('abort', () => reject(new ProviderFault('aborted')))
      })
    }
    return {
      name: 'memory',
      place: this.name,
      ...(this.sole && { sole: true as const }),
      isolation: 'none, in memory',
      provision: async (task, signal) => {
        await step('provision', task, signal)
        this.environments.set(task.environment_id, { project: task.project })
      },
      startWorker: async (task, launch, signal) => {
        const environment = this.environments.get(task.environment_id)
        if (!environment) throw new ProviderFault('the environment is not here')
        environment.worker?.process.kill()
        delete environment.worker
        await step('start', task, signal)
        this.launches.push(launch)
        const { generation } = launch
        const process = this.#start(launch, (idle) => {
          if (environment.worker?.generation === generation) this.exit(task.environment_id, idle)
        })
        environment.worker = { generation, process }
      },
      destroy: async (id) => {
        this.calls.push(`destroy ${id}`)
        if (this.fails) throw this.fails
        this.environments.get(id)?.worker?.process.kill()
        this.environments.delete(id)
        this.#removals.get(id)?.()
      },
      logs: async (id, { tail, max_bytes }) => {
        if (!this.environments.has(id)) return undefined
        const all = this.logs.get(id) ?? ''
        const content = all.split('\n').slice(-tail).join('\n').slice(-max_bytes)
        return { content, truncated: content.length < all.length }
      },
      inspect: async () =>
        [...this.environments].map(
          ([environment_id, { project, worker }]): Presence => ({
            project,
            environment_id,
            ...(worker && { generation: worker.generation }),
          }),
        ),
      onExit: (on) => {
        this.#listeners.delete(listener)
        listener = on
        this.#listeners.add(listener)
      },
      close: async () => void this.#listeners.delete(listener),
    }
  }
}
