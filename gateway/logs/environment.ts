/**
 * Follows the logs of workers of environments, for all clients of this gateway. Hosts only answer
 * requests, so the log is read again while a client follows it, once for all of them, and clients
 * receive what was added.
 *
 * Invariants:
 * E1. The text that a client has received is the log as it was read last. A frame with `reset`
 *     replaces it, which is the first frame of every subscription.
 * E2. A client that does not read is left out until its socket has drained. Nothing is buffered.
 */
import { addedTo } from '../../protocol/environments/added.ts'
import {
  environmentLimits,
  type LogName,
  type WorkerLogs,
} from '../../protocol/environments/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import type { Sink } from '../http/respond.ts'
import type { World } from '../ports.ts'
import { readWorkerLogs } from '../queries/environment-logs.ts'
import { openFollowerPool } from '../streams/follower-pool.ts'
import { frame } from '../streams/sse.ts'
import type { OpenedSequence } from '../streams/stream.ts'
import { sleep } from '../timing.ts'

/** Milliseconds between two reads of a log that is followed. */
const INTERVAL = 2000

interface Client {
  readonly sink: Sink
  sent: string | undefined
}
interface LogQuery {
  readonly environment_id: string
  readonly log_name?: LogName
  readonly tail?: number
  readonly max_bytes?: number
}

class LogFollower {
  readonly #world: World
  /** Reads the log. A client is refused if it cannot be read. */
  readonly read: () => Promise<WorkerLogs | Refusal>
  readonly #clients = new Set<Client>()
  #running = false

  constructor(world: World, project: string, query: LogQuery) {
    this.#world = world
    this.read = () =>
      readWorkerLogs(world, project, query).catch(() => refuse('service_unavailable'))
  }
  /** Sends the log as it was read to a client, and then what is added. */
  join(sink: Sink, logs: WorkerLogs): void {
    const client: Client = { sink, sent: undefined }
    this.#clients.add(client)
    sink.onClose(() => this.#clients.delete(client))
    tell(client, logs)
    if (!this.#running) void this.#run()
  }
  /** Every read has the whole log, so nothing is missed. */
  check(): void {}

  async #run(): Promise<void> {
    this.#running = true
    for (;;) {
      await sleep(this.#world, INTERVAL)
      if (this.#clients.size === 0) break
      const logs = await this.read()
      if (!isRefusal(logs))
        for (const client of this.#clients) if (!client.sink.full) tell(client, logs)
    }
    this.#running = false
  }
}

function tell(client: Client, { log_name, content, truncated }: WorkerLogs): void {
  const added = client.sent === undefined ? undefined : addedTo(client.sent, content)
  client.sent = content
  if (added === '') return
  const data =
    added === undefined
      ? { log_name, text: content, reset: true, truncated }
      : { log_name, text: added }
  client.sink.write(frame('log.text', data))
}

/** Opens the log of the environment of an admitted call of `environment.worker_logs`. */
export type OpenEnvironmentLog = (call: Call) => Promise<OpenedSequence | Refusal>
/** Creates an empty set of followed logs. */
export function openEnvironmentLogs(edge: Edge): OpenEnvironmentLog {
  const pool = openFollowerPool<{ follower: LogFollower; close(): void }>(edge.world)
  return async (call) => {
    const project = scopeId(edge, call)
    const query = {
      ...call.query,
      environment_id: call.slots['environment_id'] ?? '',
      max_bytes: environmentLimits.log_bytes,
    } as LogQuery
    const { member, release } = pool.hold(JSON.stringify([project, query]), () => ({
      follower: new LogFollower(edge.world, project, query),
      close: () => {},
    }))
    const logs = await member.follower.read()
    if (isRefusal(logs)) {
      release()
      return logs
    }
    return {
      comment: ': keepalive',
      begins: true,
      join: (sink) => member.follower.join(sink, logs),
      release,
    }
  }
}
