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
import type { HostRequest } from '../../protocol/environments/commands.ts'
import { environmentLimits } from '../../protocol/environments/schema.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { Actors, EnvironmentAddress } from './actors.ts'
import type { Provider } from './provider.ts'
import { type Ended, performTask, type TaskParts } from './task.ts'

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
export interface OperationParts extends TaskParts {
  readonly world: Pick<World, 'node' | 'now' | 'monotonic' | 'later' | 'hash' | 'log'>
  readonly actors: Actors
  readonly limits: HostLimits
  /** Creates the credential of an environment's worker. */
  credential(of: Pick<HostRequest, 'project' | 'environment_id'>): string
  /** Returns the number of environments of this host. */
  environments(): number
  /** Called when an operation has ended. */
  ended(provider: Provider, of: EnvironmentAddress, how: Ended): void
  /** Called whenever the number of running operations or environments may have changed. */
  changed(): void
}

interface Running {
  /**
   * The requested operation; absent for the removal of an environment that does not belong to the
   * place.
   */
  readonly request?: HostRequest
  readonly abort: AbortController
  readonly done: Promise<void>
}
interface Waiting {
  readonly provider: Provider
  readonly request: HostRequest
}

const keyOf = (provider: Provider, environment_id: string) => `${provider.name}/${environment_id}`

export class Operations {
  readonly #parts: OperationParts
  readonly #running = new Map<string, Running>()
  readonly #waiting = new Map<string, Waiting>()
  #stopping = false

  constructor(parts: OperationParts) {
    this.#parts = parts
  }
  /**
   * Starts the requested operation as soon as the host has capacity and no other operation of the
   * environment is running. Ignores the request if too many wait; the environment repeats it.
   */
  request(provider: Provider, request: HostRequest): void {
    if (this.#stopping) return
    const key = keyOf(provider, request.environment_id)
    const before = this.#running.get(key)?.request
    if (before?.operation === request.operation) return
    // Another operation of the environment is running. If the environment has replaced it, the
    // answer to this progress report aborts it. Otherwise, the request is outdated, and the
    // running operation continues.
    if (before) this.#reportProgress(provider, before)
    if (this.#waiting.size < MAX_WAITING || this.#waiting.has(key))
      this.#waiting.set(key, { provider, request })
    this.#startWaiting()
  }
  /**
   * Removes an environment that does not belong to the place, unless an operation of the
   * environment is running.
   */
  remove(provider: Provider, of: EnvironmentAddress): void {
    const { environment_id } = of
    if (this.#stopping || this.isRunning(provider, environment_id)) return
    this.#parts.world.log.info(
      { event: 'environment_leftover_removed', environment: environment_id },
      'an environment that does not belong to this host is removed',
    )
    this.#run(provider, of, undefined, async () => {
      await provider.destroy(environment_id)
      return { has: 'nothing' }
    })
  }
  /** Whether an operation of the environment is running. */
  isRunning(provider: Provider, environment_id: string): boolean {
    return this.#running.has(keyOf(provider, environment_id))
  }
  /** Resolves when no operation of the environment is running. */
  async settled(provider: Provider, environment_id: string): Promise<void> {
    for (;;) {
      const running = this.#running.get(keyOf(provider, environment_id))
      if (!running) return
      await running.done
    }
  }
  /** Whether the host has capacity for another operation and another environment. */
  hasRoom(): boolean {
    return (
      !this.#stopping &&
      this.#running.size < this.#parts.limits.operations &&
      !this.#hasAllEnvironments()
    )
  }
  /** Accepts no more requests. Waits a limited time for running operations, then aborts them. */
  async stop(): Promise<void> {
    const { world } = this.#parts
    this.#stopping = true
    this.#waiting.clear()
    this.#parts.changed()
    const all = () => Promise.all([...this.#running.values()].map(({ done }) => done))
    await atMost(world, STOP_TIMEOUT_MS.work, all())
    for (const { abort } of this.#running.values()) abort.abort()
    await atMost(world, STOP_TIMEOUT_MS.aborted, all())
  }

  #hasAllEnvironments(): boolean {
    let provisioning = 0
    for (const { request } of this.#running.values())
      if (request?.kind === 'provision') provisioning++
    return this.#parts.environments() + provisioning >= this.#parts.limits.environments
  }
  /** Starts waiting operations while the host has capacity. */
  #startWaiting(): void {
    for (const [key, { provider, request }] of this.#waiting) {
      if (this.#running.size >= this.#parts.limits.operations) break
      if (this.#running.has(key)) continue
      this.#waiting.delete(key)
      // A full host drops requests to provision an environment. The environment sends its request
      // again, and another host may receive it.
      if (request.kind === 'provision' && this.#hasAllEnvironments()) continue
      this.#run(provider, request, request, (signal) => this.#perform(provider, request, signal))
    }
    this.#parts.changed()
  }
  /** Runs `work` as the only operation of an environment. */
  #run(
    provider: Provider,
    of: EnvironmentAddress,
    request: HostRequest | undefined,
    work: (signal: AbortSignal) => Promise<Ended>,
  ): void {
    const key = keyOf(provider, of.environment_id)
    const abort = new AbortController()
    const done = work(abort.signal)
      .catch((error: unknown): Ended => {
        this.#parts.world.log.error(
          { event: 'host_operation_failed', err: error, environment: of.environment_id },
          'operation of an environment failed',
        )
        return { has: 'unknown' }
      })
      .then((how) => {
        this.#running.delete(key)
        this.#parts.ended(provider, of, how)
        this.#startWaiting()
      })
    this.#running.set(key, { ...(request && { request }), abort, done })
    this.#parts.changed()
  }

  /** Claims a requested operation, performs it, and reports its outcome. */
  async #perform(provider: Provider, request: HostRequest, signal: AbortSignal): Promise<Ended> {
    const { world, actors } = this.#parts
    const credential = request.kind === 'start' ? this.#parts.credential(request) : undefined
    const claimed = await actors.send(request, 'environment.claim', {
      operation: request.operation,
      host: world.node,
      place: provider.place,
      isolation: provider.isolation,
      ...(provider.sole && { sole: true as const }),
      ...(credential !== undefined && { token_hash: world.hash(credential) }),
    })
    if (isRefusal(claimed)) return { has: 'unknown' }
    const task = claimed.reply
    const mine = { operation: task.operation, host: world.node }
    const stopProgress = every(world, environmentLimits.report, () =>
      this.#reportProgress(provider, request),
    )
    try {
      const { how, error } = await performTask(this.#parts, provider, task, credential, signal)
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
  #reportProgress(provider: Provider, request: HostRequest): void {
    const { actors, world } = this.#parts
    const { environment_id, operation } = request
    void actors
      .send(request, 'environment.progress', { operation, host: world.node })
      .then((decided) => {
        const running = this.#running.get(keyOf(provider, environment_id))
        if (running?.request?.operation !== operation) return
        if (!isRefusal(decided) && !decided.reply.current) running.abort.abort()
      })
  }
}
