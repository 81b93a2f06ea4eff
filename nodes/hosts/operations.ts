/**
 * Performs the operations of a host: claims an operation, lets the provider perform it, and reports
 * the outcome.
 *
 * Invariants:
 * O1. At most one operation of an environment runs, and at most `limits.operations` altogether. A
 *     request that cannot start yet waits. A later request for the same environment replaces it.
 * O2. The host performs only operations that it has claimed. When the environment answers that an
 *     operation is no longer current, the operation is aborted and its outcome is not reported.
 * O3. Aborting an operation removes nothing, because another host of the same place may already be
 *     continuing it. `presence.ts` finds the environments that do not belong to the place.
 * O4. A report is repeated until the environment has decided it, but only for
 *     `environmentLimits.stale`. By then, the environment must have assigned the operation to
 *     another host.
 */
import type { World } from '../../gateway/ports.ts'
import { atMost, every } from '../../gateway/timing.ts'
import type { HostRequest, HostTask } from '../../protocol/environments/commands.ts'
import { environmentLimits } from '../../protocol/environments/schema.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { Actors, EnvironmentAddress } from './actors.ts'
import { type LaunchSettings, launchOf, type ProjectFacts } from './launch.ts'
import { type Provider, ProviderFault } from './provider.ts'

/**
 * Maximum number of waiting requests. Additional requests are dropped, and environments repeat
 * them.
 */
const MAX_WAITING = 1000
/** Milliseconds for which `stop` waits for running operations, and then for aborted ones. */
const STOP_TIMEOUT_MS = { work: 5000, aborted: 3000 } as const

export interface HostLimits {
  /** Maximum number of environments on this host. */
  readonly environments: number
  /** Maximum number of concurrent operations. */
  readonly operations: number
}
export interface OperationParts {
  readonly world: Pick<World, 'node' | 'now' | 'monotonic' | 'later' | 'hash' | 'log'>
  readonly actors: Actors
  readonly limits: HostLimits
  readonly launch: LaunchSettings
  /** Creates the credential of an environment's worker. */
  credential(of: Pick<HostRequest, 'project' | 'environment_id'>): string
  /** Looks up a project. @throws ProviderFault when the project cannot be read. */
  project(id: string): Promise<ProjectFacts>
  /** Returns the number of environments of this host. */
  environments(): number
  /** Called when an operation has ended. */
  ended(provider: Provider, of: EnvironmentAddress, how: Ended): void
  /** Called whenever the number of running operations or environments may have changed. */
  changed(): void
}
/**
 * Whether a provider has the environment after an operation. `unknown` if the operation was not
 * claimed, failed or was aborted.
 */
export type Ended =
  | { readonly has: 'nothing' | 'unknown' }
  | { readonly has: 'environment'; readonly generation?: number }

interface Running {
  /**
   * The requested operation; absent for the removal of an environment that does not belong to the
   * place.
   */
  readonly request?: HostRequest
  readonly abort: AbortController
  readonly done: Promise<void>
}
export interface Operations {
  /**
   * Starts the requested operation as soon as the host has capacity and no other operation of the
   * environment is running. Ignores the request if too many wait; the environment repeats it.
   */
  request(provider: Provider, request: HostRequest): void
  /** Whether an operation of the environment is running. */
  isRunning(provider: Provider, environment_id: string): boolean
  /** Resolves when no operation of the environment is running. */
  settled(provider: Provider, environment_id: string): Promise<void>
  /**
   * Removes an environment that does not belong to the place, unless an operation of the
   * environment is running.
   */
  remove(provider: Provider, of: EnvironmentAddress): void
  /** Whether the host has capacity for another operation and another environment. */
  hasRoom(): boolean
  /** Accepts no more requests. Waits a limited time for running operations, then aborts them. */
  stop(): Promise<void>
}

const keyOf = (provider: Provider, environment_id: string) => `${provider.name}/${environment_id}`

export function createOperations(parts: OperationParts): Operations {
  const { world, actors, limits } = parts
  const running = new Map<string, Running>()
  const waiting = new Map<string, { readonly provider: Provider; readonly request: HostRequest }>()
  let stopping = false

  const provisioning = (): number => {
    let count = 0
    for (const one of running.values()) if (one.request?.kind === 'provision') count++
    return count
  }
  const isFull = (): boolean => parts.environments() + provisioning() >= limits.environments

  /** Runs `work` as the only operation of an environment. */
  function run(
    provider: Provider,
    of: EnvironmentAddress,
    request: HostRequest | undefined,
    work: (signal: AbortSignal) => Promise<Ended>,
  ): void {
    const key = keyOf(provider, of.environment_id)
    const abort = new AbortController()
    const done = work(abort.signal)
      .catch((error: unknown): Ended => {
        world.log.error(
          { event: 'host_operation_failed', err: error, environment: of.environment_id },
          'operation of an environment failed',
        )
        return { has: 'unknown' }
      })
      .then((how) => {
        running.delete(key)
        parts.ended(provider, of, how)
        next()
      })
    running.set(key, {
      ...(request && { request }),
      abort,
      done,
    })
    parts.changed()
  }
  /** Starts waiting operations while the host has capacity. */
  function next(): void {
    for (const [key, { provider, request }] of waiting) {
      if (running.size >= limits.operations) break
      if (running.has(key)) continue
      waiting.delete(key)
      // A full host drops requests to provision an environment. The environment sends its request
      // again, and another host may receive it.
      if (request.kind === 'provision' && isFull()) continue
      run(provider, request, request, (signal) => perform(provider, request, signal))
    }
    parts.changed()
  }

  async function perform(
    provider: Provider,
    request: HostRequest,
    signal: AbortSignal,
  ): Promise<Ended> {
    const credential = request.kind === 'start' ? parts.credential(request) : undefined
    const claimed = await actors.send(request, 'environment.claim', {
      operation: request.operation,
      host: world.node,
      place: provider.place,
      isolation: provider.isolation,
      ...(credential !== undefined && { token_hash: world.hash(credential) }),
    })
    if (isRefusal(claimed)) return { has: 'unknown' }
    const task = claimed.reply
    const mine = { operation: task.operation, host: world.node }
    const stopProgress = every(world, environmentLimits.report, () => progress(provider, request))
    try {
      const { how, error } = await attempt(provider, task, credential, signal)
      if (signal.aborted) return { has: 'unknown' }
      const until = world.monotonic() + environmentLimits.stale
      await actors.insist(
        request,
        'environment.report',
        error === undefined ? { ...mine, outcome: 'done' } : { ...mine, outcome: 'failed', error },
        () => world.monotonic() >= until,
      )
      return how
    } finally {
      stopProgress()
    }
  }
  /** Reports that an operation is still running, and aborts it if it is no longer current. */
  function progress(provider: Provider, request: HostRequest): void {
    const { environment_id, operation } = request
    void actors
      .send(request, 'environment.progress', { operation, host: world.node })
      .then((decided) => {
        const one = running.get(keyOf(provider, environment_id))
        if (one?.request?.operation !== operation) return
        if (!isRefusal(decided) && !decided.reply.current) one.abort.abort()
      })
  }

  /** Lets the provider perform a task. `error` is a message for users. */
  async function attempt(
    provider: Provider,
    task: HostTask,
    credential: string | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly how: Ended; readonly error?: string }> {
    try {
      switch (task.kind) {
        case 'provision':
          await provider.provision(task, signal)
          return { how: { has: 'environment' } }
        case 'start': {
          const project = await parts.project(task.project)
          const launch = launchOf(task, credential ?? '', project, parts.launch)
          await provider.startWorker(task, launch, signal)
          return { how: { has: 'environment', generation: launch.generation } }
        }
        case 'destroy':
          await provider.destroy(task.environment_id)
          return { how: { has: 'nothing' } }
      }
    } catch (error) {
      const how: Ended = { has: 'unknown' }
      if (error instanceof ProviderFault) return { how, error: error.message }
      if (!signal.aborted)
        world.log.error(
          {
            event: 'environment_provider_failed',
            err: error,
            environment: task.environment_id,
            provider: provider.name,
          },
          'provider of environments failed',
        )
      return { how, error: 'An internal error of the provider occurred.' }
    }
  }

  return {
    request(provider, request) {
      if (stopping) return
      const key = keyOf(provider, request.environment_id)
      const before = running.get(key)?.request
      if (before?.operation === request.operation) return
      // Another operation of the environment is running. If the environment has replaced it, the
      // answer to this progress report aborts it. Otherwise, the request is outdated, and the
      // running operation continues.
      if (before) progress(provider, before)
      if (waiting.size < MAX_WAITING || waiting.has(key)) waiting.set(key, { provider, request })
      next()
    },
    isRunning: (provider, environment_id) => running.has(keyOf(provider, environment_id)),
    settled: async (provider, environment_id) => {
      for (;;) {
        const one = running.get(keyOf(provider, environment_id))
        if (!one) return
        await one.done
      }
    },
    remove(provider, of) {
      const { environment_id } = of
      if (stopping || running.has(keyOf(provider, environment_id))) return
      world.log.info(
        { event: 'environment_leftover_removed', environment: environment_id },
        'an environment that does not belong to this host is removed',
      )
      run(provider, of, undefined, async () => {
        await provider.destroy(environment_id)
        return { has: 'nothing' }
      })
    },
    hasRoom: () => !stopping && running.size < limits.operations && !isFull(),
    async stop() {
      stopping = true
      waiting.clear()
      parts.changed()
      const all = () => Promise.all([...running.values()].map(({ done }) => done))
      await atMost(world, STOP_TIMEOUT_MS.work, all())
      for (const one of running.values()) one.abort.abort()
      await atMost(world, STOP_TIMEOUT_MS.aborted, all())
    },
  }
}
