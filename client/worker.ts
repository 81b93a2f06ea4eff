/**
 * The worker library: does jobs for a service, over one WebSocket that it keeps up by itself.
 *
 *     const worker = new Worker({ url, key, concurrency: 4, actions: { 'send-receipt': async ({ to }) => send(to) } })
 *     await worker.start()
 *     process.once('SIGTERM', () => worker.drain())
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { routeOf } from '../protocol/contract.ts'
import { workers } from '../protocol/workers/socket.ts'
import { Core, type Ports } from './worker/core.ts'
import type { WorkerEnd, WorkerOptions } from './worker/options.ts'
import { systemClock } from './worker/ports.ts'
import { dial } from './worker/socket.ts'

export {
  WorkerError,
  type Action,
  type ActionContext,
  type JobEvent,
  type Parameters,
  type WorkerEnd,
  type WorkerOptions,
  type WorkerState,
} from './worker/options.ts'

export class Worker {
  /** Identity under which the worker is listed. */
  readonly instance: string
  readonly #core: Core

  /** @param ports the world; the real one unless a test gives another. */
  constructor(options: WorkerOptions, ports: Ports = { clock: systemClock(randomUUID), dial }) {
    const {
      url,
      key,
      project = 'default',
      instance = `${hostname()}-${randomUUID().slice(0, 8)}`,
      concurrency = 1,
      ...rest
    } = options
    if (!Number.isInteger(concurrency) || concurrency < 1)
      throw new RangeError('concurrency must be a whole number, 1 or more')
    this.instance = instance
    const path = `/v1${routeOf(workers['worker.socket']).path.replace(':project', encodeURIComponent(project))}`
    const urls = (typeof url === 'string' ? [url] : url).map(
      (base) => `${base.replace(/^http/, 'ws').replace(/\/$/, '')}${path}`,
    )
    if (urls.length === 0) throw new RangeError('a worker needs at least one address')
    this.#core = new Core(
      { ...rest, instance, concurrency, urls, headers: { authorization: `Bearer ${key}` } },
      ports,
    )
  }

  /** Resolves when the worker has ended, whatever the reason; never rejects. */
  get ended(): Promise<WorkerEnd> {
    return this.#core.ended
  }
  /** Connect and begin to take jobs. Resolves when registered; a service that is away is waited for. @throws WorkerError when refused for good. */
  start(): Promise<void> {
    return this.#core.start()
  }
  /** Take no more jobs, finish and report the running ones, then close. */
  drain(): Promise<WorkerEnd> {
    return this.#core.drain()
  }
  /** Tell running jobs to stop and give them back; ends within 5 seconds. */
  stop(): Promise<WorkerEnd> {
    return this.#core.stop()
  }
}
