/**
 * Detects the end of workers' containers from the events of the engine.
 *
 * Invariants:
 * W1. The end of a worker is reported at most once, and only while the worker is followed. The
 *     caller calls `forget` before it removes the container of a worker.
 * W2. No end is missed. After an interruption, the engine also sends the events since the last one
 *     received, and a comparison with the list of running containers finds the remaining ends.
 */
import { backoffMs } from '../../../gateway/timing.ts'
import type { Clock } from '../../host/ports.ts'
import type { WorkerExit } from '../provider.ts'
import { label } from './container.ts'
import { type Engine, filters, parseResponse } from './engine.ts'

/** Initial and maximum backoff before the connection to the engine is reopened, in milliseconds. */
const RETRY = { first: 500, last: 10_000 } as const
/** Maximum length in characters of an incomplete line of events. A longer line is truncated. */
const MAX_LINE_LENGTH = 1024 * 1024

interface FollowedWorker {
  readonly project: string
  readonly environment_id: string
  readonly generation: number
  readonly container: string
}
export interface Watch {
  /**
   * Follows a worker until it ends or `forget` is called. Does nothing if the same or a newer
   * worker of the environment is already followed.
   */
  follow(worker: FollowedWorker): void
  forget(environment_id: string): void
  /**
   * Reports the end of each followed worker that is no longer running.
   * @param running ids of the running containers.
   * @throws ProviderFault when the engine does not respond.
   */
  compare(running: ReadonlySet<string>): Promise<void>
  onExit(listener: (exit: WorkerExit) => void): void
  stop(): void
}
interface ContainerState {
  readonly State: {
    readonly Running: boolean
    readonly ExitCode: number
    readonly OOMKilled?: boolean
    readonly Error?: string
  }
}

export function watchWorkers(
  engine: Engine,
  clock: Pick<Clock, 'now' | 'elapsed' | 'later'>,
  installation: string,
): Watch {
  const followed = new Map<string, FollowedWorker>()
  const stopped = new AbortController()
  let listener: (exit: WorkerExit) => void = () => {}
  let cancelRetry = () => {}
  let since = clock.now()

  async function ended(worker: FollowedWorker): Promise<void> {
    const { project, environment_id, generation, container } = worker
    const described = await engine.call('GET', `/containers/${container}/json`, { accepts: [404] })
    const state =
      described.status === 404 ? undefined : parseResponse<ContainerState>(described).State
    // `compare` may have received a list of running containers from before this container started.
    if (state?.Running || followed.get(environment_id) !== worker || stopped.signal.aborted) return
    followed.delete(environment_id)
    const error = state && faultOf(state)
    listener({
      project,
      environment_id,
      generation,
      idle: state?.ExitCode === 0,
      ...(state && { exit_code: state.ExitCode }),
      ...(error !== undefined && { error }),
      ...(!state && { error: 'The container of the worker was removed.' }),
    })
  }
  /**
   * Reports the end of a worker when the engine answers a request that waits for it. An event alone
   * may precede the change of the container's state. If the request fails, `compare` detects the
   * end.
   */
  async function awaitEnd(worker: FollowedWorker): Promise<void> {
    const options = { accepts: [404], signal: stopped.signal }
    await engine.call('POST', `/containers/${worker.container}/wait`, options)
    await ended(worker)
  }
  function event(line: string): void {
    if (line === '') return
    const { id, time } = JSON.parse(line) as { readonly id?: string; readonly time?: number }
    if (time !== undefined) since = time * 1000
    for (const worker of followed.values())
      if (worker.container === id) void awaitEnd(worker).catch(() => {})
  }
  async function listen(failures: number): Promise<void> {
    const began = clock.elapsed()
    let rest = ''
    const query = {
      // In filters, the event is called `died` by Podman and `die` by Docker.
      ...filters({
        type: ['container'],
        event: ['die', 'died'],
        label: [`${label.installation}=${installation}`],
      }),
      since: String(Math.floor(since / 1000)),
    }
    const onData = (part: Buffer): void => {
      const lines = (rest + part.toString()).split('\n')
      rest = (lines.pop() ?? '').slice(0, MAX_LINE_LENGTH)
      for (const line of lines) event(line)
    }
    const options = { query, signal: stopped.signal, silence_ms: 0 }
    await engine.stream('GET', '/events', onData, options).catch(() => undefined)
    if (stopped.signal.aborted) return
    const next = clock.elapsed() - began > RETRY.last ? 0 : failures + 1
    cancelRetry = clock.later(backoffMs(next, RETRY), () => void listen(next))
  }
  void listen(0)

  return {
    follow(worker) {
      const before = followed.get(worker.environment_id)
      if (
        before &&
        (before.generation > worker.generation || before.container === worker.container)
      )
        return
      followed.set(worker.environment_id, worker)
      // The worker may have ended already. If the check fails, `compare` detects the end.
      void ended(worker).catch(() => {})
    },
    forget: (environment_id) => void followed.delete(environment_id),
    compare: async (running) => {
      const gone = [...followed.values()].filter(({ container }) => !running.has(container))
      await Promise.all(gone.map(ended))
    },
    onExit: (on) => {
      listener = on
    },
    stop() {
      stopped.abort()
      cancelRetry()
    },
  }
}

/** Returns a sentence that states why a container ended; undefined for exit code 0. */
function faultOf({ ExitCode, OOMKilled, Error: message }: ContainerState['State']) {
  if (OOMKilled) return 'The worker exceeded its memory limit.'
  if (message) return `The container failed: ${message}`
  if (ExitCode === 0) return undefined
  return ExitCode > 128
    ? `The worker was ended by signal ${ExitCode - 128}.`
    : `The worker ended with exit code ${ExitCode}.`
}
