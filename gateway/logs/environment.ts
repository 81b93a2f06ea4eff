/**
 * Follows the worker logs of environments for all clients of this gateway. Hosts do not announce
 * new log text. While any client follows a log, the log is therefore read every `READ_EVERY_MS`,
 * once for all clients, which receive the added text.
 *
 * Invariants:
 * E1. The text that a client has received since the last `reset` ends with the content of the last
 *     read. A frame with `reset` replaces all earlier text. The first frame of every subscription
 *     has `reset`.
 * E2. A client whose socket is full is skipped until the socket has drained. Nothing is buffered.
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
const READ_EVERY_MS = 2000

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
  /** Reads the log. Returns `service_unavailable` when the read fails. */
  readonly read: () => Promise<WorkerLogs | Refusal>
  readonly #clients = new Set<Client>()
  #running = false

  constructor(world: World, project: string, query: LogQuery) {
    this.#world = world
    this.read = () =>
      readWorkerLogs(world, project, query).catch(() => refuse('service_unavailable'))
  }
  /** Sends a client the text that was read, and later any text that is added to the log. */
  join(sink: Sink, logs: WorkerLogs): void {
    const client: Client = { sink, sent: undefined }
    this.#clients.add(client)
    sink.onClose(() => this.#clients.delete(client))
    sendAdded(client, logs)
    if (!this.#running) void this.#run()
  }
  /** Does nothing: each read returns the current end of the log, so no change can be missed. */
  check(): void {}

  async #run(): Promise<void> {
    this.#running = true
    for (;;) {
      await sleep(this.#world, READ_EVERY_MS)
      if (this.#clients.size === 0) break
      const logs = await this.read()
      if (!isRefusal(logs))
        for (const client of this.#clients) if (!client.sink.full) sendAdded(client, logs)
    }
    this.#running = false
  }
}

function sendAdded(client: Client, { log_name, content, truncated }: WorkerLogs): void {
  const added = client.sent === undefined ? undefined : addedTo(client.sent, content)
  client.sent = content
  if (added === '') return
  const data =
    added === undefined
      ? { log_name, text: content, reset: true, truncated }
      : { log_name, text: added }
  client.sink.write(frame('log.text', data))
}

/** Opens the log that an admitted call to `environment.worker_logs` requests. */
export type OpenEnvironmentLog = (call: Call) => Promise<OpenedSequence | Refusal>
/** Creates the function that opens logs. Its clients share one follower for each log. */
export function openEnvironmentLogs(edge: Edge): OpenEnvironmentLog {
  const pool = openFollowerPool<{ follower: LogFollower; close(): void }>(edge.world)
  return async (call) => {
    const project = scopeId(edge, call)
    const query = {
      ...call.query,
      environment_id: call.slots['environment_id'] ?? '',
      max_bytes: environmentLimits.log_bytes,
    } as LogQuery
    const { member, release } = pool.acquire(JSON.stringify([project, query]), () => ({
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
