/**
 * The worker library: executes jobs for a service over one WebSocket, with automatic reconnection.
 *
 *     const worker = new Worker({
 *       url,
 *       key,
 *       concurrency: 4,
 *       actions: { 'send-receipt': async ({ to }) => send(String(to)) },
 *     })
 *     await worker.start()
 *     process.once('SIGTERM', () => worker.drain())
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { routeOf } from '../protocol/contract.ts'
import { workers } from '../protocol/workers/rows.ts'
import { publisherOf } from './artifacts/publish.ts'
import { Transport } from './transport.ts'
import { Core, type Ports } from './worker/core.ts'
import { type WorkerEnd, WorkerError, type WorkerOptions } from './worker/options.ts'
import { systemClock } from './worker/ports.ts'
import { dial } from './worker/socket.ts'

export type { ArtifactReference, PublishOptions } from './artifacts/publish.ts'
export type { JobLog, LogFields } from './worker/logs.ts'
export {
  type Action,
  type ActionContext,
  type JobEvent,
  type Parameters,
  type WorkerEnd,
  WorkerError,
  type WorkerOptions,
  type WorkerState,
} from './worker/options.ts'

export class Worker {
  /** Identity of the worker in lists of workers. */
  readonly instance: string
  readonly #core: Core

  /**
   * @param ports clock and sockets; the real ones by default.
   * @throws WorkerError with the code `invalid_options` if an address or the key cannot be used;
   * RangeError if `concurrency` is invalid or no address is given.
   */
  constructor(options: WorkerOptions, ports: Ports = { clock: systemClock(randomUUID), dial }) {
    const {
      url,
      key = '',
      project = 'default',
      instance = `${hostname()}-${randomUUID().slice(0, 8)}`,
      concurrency = 1,
      ...rest
    } = options
    if (!Number.isInteger(concurrency) || concurrency < 1)
      throw new RangeError('concurrency must be a whole number of at least 1')
    const addresses = typeof url === 'string' ? [url] : url
    if (addresses.length === 0) throw new RangeError('a worker needs at least one address')
    checkConnection(addresses, key)
    this.instance = instance
    const path = `/v1${routeOf(workers['worker.socket']).path.replace(':project', encodeURIComponent(project))}`
    const urls = addresses.map((base) => `${base.replace(/^http/, 'ws').replace(/\/$/, '')}${path}`)
    this.#core = new Core(
      {
        ...rest,
        instance,
        concurrency,
        urls,
        headers: key === '' ? {} : { authorization: `Bearer ${key}` },
        publish: publisherOf(
          new Transport({ url: addresses.map((one) => one.replace(/^ws/i, 'http')), key, project }),
        ),
      },
      ports,
    )
  }

  /** Resolves when the worker has ended, for any reason. Never rejects. */
  get ended(): Promise<WorkerEnd> {
    return this.#core.ended
  }
  /**
   * Connects and starts to claim jobs. Resolves when the worker is registered. Retries while the
   * service is unavailable.
   * @throws WorkerError if the service rejects the worker permanently; Error if the worker was
   * started before, or is drained or stopped before it is registered.
   */
  start(): Promise<void> {
    return this.#core.start()
  }
  /** Claims no more jobs, finishes and reports the running ones, then closes. */
  drain(): Promise<WorkerEnd> {
    return this.#core.drain()
  }
  /** Signals running jobs to stop and returns them to their queues. Ends within 5 seconds. */
  stop(): Promise<WorkerEnd> {
    return this.#core.stop()
  }
  /**
   * Signals running jobs to stop, and ends immediately without reporting them. Their leases expire,
   * so only jobs that may be repeated are executed again.
   */
  abandon(): Promise<WorkerEnd> {
    this.#core.abandon()
    return this.ended
  }
}

/** Schemes of the addresses that a WebSocket can connect to. */
const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'ws:', 'wss:'])
/**
 * Checks that a socket can be opened to each address with the key.
 * @throws WorkerError with the code `invalid_options`. Its message does not contain the key.
 */
function checkConnection(addresses: readonly string[], key: string): void {
  for (const address of addresses) {
    const url = URL.canParse(address) ? new URL(address) : undefined
    if (!url || !SCHEMES.has(url.protocol) || url.hash !== '')
      throw new WorkerError(
        'invalid_options',
        `${JSON.stringify(address)} is not an address of a service, such as http://127.0.0.1:8080`,
      )
  }
  if (/[^ -~]/.test(key))
    throw new WorkerError(
      'invalid_options',
      'The key contains a character that is not printable ASCII, such as a line break',
    )
}
