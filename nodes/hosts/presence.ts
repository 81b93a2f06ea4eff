/**
 * Reports to the actor of each environment, at the start and periodically, whether the provider has
 * the environment. Removes the environments that do not belong to the provider's place.
 *
 * Invariants:
 * S1. The reports of a round are spread over the interval until the next round. Only those at the
 *     start are sent at once, at most `MAX_CONCURRENT` at a time.
 * S2. If an environment changes during an inspection, or while a report is in flight, the result or
 *     the reply is outdated. The environment is then neither removed nor reported as missing.
 * S3. The end of a worker is reported only after the operation that started the worker has settled.
 *     The report is repeated until the actor has decided it.
 */
import type { World } from '../../gateway/ports.ts'
import { every } from '../../gateway/timing.ts'
import { environmentLimits } from '../../protocol/environments/schema.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { hashOf } from '../../protocol/subjects.ts'
import type { Actors, EnvironmentAddress } from './actors.ts'
import type { Operations } from './operations.ts'
import type { Provider, WorkerExit } from './provider.ts'
import type { Ended } from './task.ts'

/** Maximum number of reports in flight at the start. */
const MAX_CONCURRENT = 16

/**
 * The facts about one environment. Every change replaces the object, so changes are detected by
 * comparing references.
 */
interface Known extends EnvironmentAddress {
  readonly generation?: number
}
/** A report about one environment that is still to be sent. */
interface Report {
  readonly id: string
  readonly send: () => Promise<void>
}
export interface PresenceParts {
  readonly world: Pick<World, 'node' | 'later' | 'log'>
  readonly actors: Actors
  readonly provider: Provider
  readonly operations: Pick<Operations, 'isRunning' | 'settled' | 'remove'>
  /** Called when the number of environments may have changed. */
  changed(): void
}
export interface Presence {
  /** Returns the number of environments that the provider has. */
  count(): number
  /** Records the outcome of an operation. */
  ended(of: EnvironmentAddress, how: Ended): void
  /**
   * Inspects the provider and reports all environments. Resolves when each report has been answered
   * or has timed out.
   */
  begin(): Promise<void>
  stop(): void
}

export function createPresence({
  world,
  actors,
  provider,
  operations,
  changed,
}: PresenceParts): Presence {
  const known = new Map<string, Known>()
  const timers = new Set<() => void>()
  let stopped = false
  let inspecting = false
  let inspectionFails = false

  const isBusy = (id: string) => operations.isRunning(provider, id)
  const isUnchanged = (one: Known) =>
    !stopped && known.get(one.environment_id) === one && !isBusy(one.environment_id)

  async function reportPresent(id: string): Promise<void> {
    const one = known.get(id)
    // No report is sent during an operation, whose progress reports already show that this host is
    // alive.
    if (!one || !isUnchanged(one)) return
    const seen = await actors.send(one, 'environment.seen', {
      place: provider.place,
      host: world.node,
      presence: 'present',
      ...(one.generation !== undefined && { generation: one.generation }),
    })
    if (!isRefusal(seen) && !seen.reply.expected && isUnchanged(one))
      operations.remove(provider, one)
  }
  async function reportMissing(one: Known): Promise<void> {
    const seen = await actors.send(one, 'environment.seen', {
      place: provider.place,
      host: world.node,
      presence: 'missing',
    })
    // Without an answer, the next round reports the environment again.
    if (isRefusal(seen) || !isUnchanged(one)) return
    known.delete(one.environment_id)
    changed()
  }

  /**
   * Compares the provider's environments with the known ones. Returns the known environments that
   * the provider no longer has.
   */
  async function inspect(): Promise<readonly Known[]> {
    const before = new Map(known)
    const isSame = (id: string) => known.get(id) === before.get(id) && !isBusy(id)
    try {
      const found = await provider.inspect()
      for (const one of found)
        if (isSame(one.environment_id)) known.set(one.environment_id, { ...one })
      const here = new Set(found.map(({ environment_id }) => environment_id))
      inspectionFails = false
      return [...before.values()].filter(({ environment_id: id }) => !here.has(id) && isSame(id))
    } catch (error) {
      if (!inspectionFails)
        world.log.warn(
          { event: 'environment_inspection_failed', err: error, provider: provider.name },
          'the environments of a provider cannot be listed',
        )
      inspectionFails = true
      return []
    }
  }
  /** Inspects the provider. Returns a report for each environment, or undefined when stopped. */
  async function prepareReports(): Promise<Report[] | undefined> {
    if (inspecting || stopped) return undefined
    inspecting = true
    const missing = await inspect()
    inspecting = false
    if (stopped) return undefined
    changed()
    const lost = new Set(missing.map(({ environment_id }) => environment_id))
    return [
      ...missing.map((one) => ({ id: one.environment_id, send: () => reportMissing(one) })),
      ...[...known.keys()]
        .filter((id) => !lost.has(id))
        .map((id) => ({ id, send: () => reportPresent(id) })),
    ]
  }
  /** Sends the reports at once, as at the start (S1). */
  async function reportAtOnce(): Promise<void> {
    const reports = (await prepareReports()) ?? []
    const sendNext = async (): Promise<void> => {
      for (let next = reports.pop(); next; next = reports.pop()) await next.send()
    }
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, sendNext))
  }
  /** Spreads the reports over the interval until the next round (S1). */
  async function reportSpread(): Promise<void> {
    for (const { id, send } of (await prepareReports()) ?? []) {
      const cancel = world.later(hashOf(id) % environmentLimits.report, () => {
        timers.delete(cancel)
        void send()
      })
      timers.add(cancel)
    }
  }

  function exited(exit: WorkerExit): void {
    const { project, environment_id, generation, idle, exit_code, error } = exit
    const of = { project, environment_id }
    /** Records that the environment has no worker, unless it has another one. */
    const forgetWorker = (): void => {
      if (known.get(environment_id)?.generation === generation) known.set(environment_id, of)
    }
    forgetWorker()
    void operations.settled(provider, environment_id).then(() => {
      // If the worker ended before the operation that started it, the operation has afterwards
      // recorded the worker as running.
      forgetWorker()
      return actors.insist(
        of,
        'environment.exited',
        {
          place: provider.place,
          generation,
          idle,
          ...(exit_code !== undefined && { exit_code }),
          ...(error !== undefined && { error }),
        },
        () => stopped,
      )
    })
  }
  provider.onExit(exited)
  let stopRounds = () => {}

  return {
    count: () => known.size,
    ended({ project, environment_id }, how) {
      if (how.has === 'nothing') known.delete(environment_id)
      else if (how.has === 'environment')
        known.set(environment_id, {
          project,
          environment_id,
          ...(how.generation !== undefined && { generation: how.generation }),
        })
      // The operation failed. The next inspection finds what it left behind. Replacing the object
      // marks a change (S2).
      else {
        const one = known.get(environment_id)
        if (one) known.set(environment_id, { ...one })
      }
      changed()
    },
    begin: async () => {
      stopRounds = every(world, environmentLimits.report, () => void reportSpread())
      await reportAtOnce()
    },
    stop() {
      stopped = true
      stopRounds()
      for (const cancel of timers) cancel()
      timers.clear()
    },
  }
}
