/**
 * The state that all worker connections of a gateway share: connections, sessions, limits, and
 * subscriptions to offers. This file also sends commands on behalf of workers to queues and to the
 * registry of workers.
 */

import type { Credential, Principal } from '../../protocol/entry.ts'
import { type Refusal, refuse } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { queueOfLease } from '../../protocol/jobs/lease-token.ts'
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { CommandInput, CommandName, CommandReply } from '../../protocol/queries/commands.ts'
import type { AddressOf } from '../../protocol/queries/owners.ts'
import { shardOf } from '../../protocol/subjects.ts'
import type { Filters } from '../../protocol/workers/socket.ts'
import { type LogWriters, openLogWriters } from '../logs/writers.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Outcome, World } from '../ports.ts'
import { openPreviews, type Previews } from '../sessions/transcript/previews.ts'
import { WorkInProgress } from '../timing.ts'
import type { Connection } from './connection.ts'
import { openWorkerTerminals, type WorkerTerminals } from './environments/terminals.ts'
import { type Answers, createAnswers } from './jobs/answers.ts'
import { createFilterCache, type PreparedFilters } from './jobs/eligible.ts'
import type { OfferSubscription } from './jobs/offers.ts'
import type { Session } from './session.ts'
import { TimerWheel } from './timer-wheel.ts'

/**
 * The access that an upgrade grants to a connection: the project, the principal for which it acts,
 * and a function that checks the access again.
 */
export interface Grant {
  /** The project's id. */
  readonly project: string
  /** The project's handle. */
  readonly handle: string
  readonly principal: Principal
  readonly credential?: Credential
  /**
   * Only for the worker of an environment: the id of the environment, and the worker's generation.
   */
  readonly environment?: { readonly id: string; readonly generation: number }
  /** Identifies the access. Connections with the same key share one recheck. */
  readonly key: string
  /** Checks the access again. Returns the refusal, or undefined while the access is valid. */
  recheck(): Promise<Refusal | undefined>
  /**
   * Returns whether the caller is an agent that is inactive, or whose status cannot be determined
   * synchronously. Such a caller may connect, but receives no new jobs. Present only for agents.
   */
  readonly asleep?: () => boolean
}

/**
 * Limits of the worker socket. `frames_per_second` is the maximum average rate of a connection, and
 * `frames_at_once` its maximum burst. Times are in milliseconds.
 */
export const limits = {
  frames_per_second: 5000,
  frames_at_once: 20_000,
  /** Time after which a socket that writes none of its buffered data is closed. */
  drain: 10_000,
  ping: 25_000,
  /** Time after which a reserved slot is freed, or an undelivered job returns to its queue. */
  reservation: 5000,
  /**
   * Time for which the answer to a claim waits for other reserved jobs, and minimum time between
   * two announcements of demand.
   */
  batch: 5,
  /** Time between repetitions of `work.available`. */
  remind: 5000,
  /** Minimum time between a `work.available` and the first reminder after it. */
  hint: 1000,
  /** Time between checks that credentials are still valid. */
  recheck: 5000,
  /**
   * Maximum duration of each wait of `stop`: for commands in progress before and after it closes
   * the sockets, and for the storage of log lines.
   */
  stop: 3000,
  /** Maximum number of frames that are buffered during a registration. */
  backlog: 256,
  /** Maximum number of open claims of a session. */
  claims: 8,
  /**
   * Number of `Order` objects of a project at which idle ones are removed before another is
   * created. There is one for each queue and capability.
   */
  orders: 256,
} as const

/**
 * Determines whether a job is executed by the service or by a worker. Refused when the directory
 * cannot be read.
 */
export type Serves = (project: string, job: JobHeader) => MaybePromise<Served | Refusal>
/**
 * Whether the service executes a job itself. `losses` is a lower bound for `max_losses`, the number
 * of lost leases at which the job fails.
 */
export interface Served {
  readonly byService: boolean
  readonly losses?: number
}

/** State shared by all worker connections of a gateway. */
export interface WorkerEdge {
  readonly world: World
  readonly serves: Serves
  readonly connections: Set<Connection>
  readonly timerWheel: TimerWheel
  /** Prepares filters for matching. Equal filters usually share one object. */
  readonly prepareFilters: (filters: Filters) => PreparedFilters
  /** The current `Session` object of each session, by session id. */
  readonly sessions: Map<string, Session>
  readonly offerSubscriptions: Map<string, OfferSubscription>
  readonly answers: Answers
  /** Publishes the model output of the workers that are connected to this gateway. */
  readonly previews: Previews
  /** Stores the log lines of the workers that are connected to this gateway. */
  readonly logs: LogWriters
  /** Terminals of the workers that are connected to this gateway. */
  readonly terminals: WorkerTerminals
  /** The commands in progress, for which `stop` waits. */
  readonly pending: WorkInProgress
  stopping: boolean
}

/** Creates the state of a gateway without connections. */
export const openWorkerEdge = (world: World, serves: Serves): WorkerEdge => ({
  world,
  terminals: openWorkerTerminals(world),
  serves,
  connections: new Set(),
  timerWheel: new TimerWheel(world),
  prepareFilters: createFilterCache(),
  sessions: new Map(),
  offerSubscriptions: new Map(),
  answers: createAnswers(() => world.monotonic()),
  previews: openPreviews(world),
  logs: openLogWriters(world),
  pending: new WorkInProgress(),
  stopping: false,
})

/** Sends a command to an actor on behalf of a worker's principal. `stop` waits for the outcome. */
export const sendCommand = <K extends 'queue' | 'worker' | 'environment', N extends CommandName<K>>(
  edge: WorkerEdge,
  grant: Grant,
  to: AddressOf<K>,
  name: N,
  input: CommandInput<K, N>,
): Promise<Outcome<CommandReply<K, N>>> =>
  edge.pending.add(sendUntracked(edge, grant, to, name, input, edge.world.newCommandId()))

/**
 * Sends a command like `sendCommand`, but does not add it to `pending`, which the caller must do.
 * An exception is logged and returned as the refusal `internal`, so that callers handle only one
 * kind of failure.
 */
export function sendUntracked<
  K extends 'queue' | 'worker' | 'environment',
  N extends CommandName<K>,
>(
  { world }: WorkerEdge,
  { principal, credential }: Grant,
  to: AddressOf<K>,
  name: N,
  input: CommandInput<K, N>,
  id: string,
): Promise<Outcome<CommandReply<K, N>>> {
  const origin = { at: world.now(), principal, ...(credential && { credential }) }
  return world
    .command({ project: to.project, kind: to.kind, id: to.id, command_id: id, name, input, origin })
    .catch((error: unknown) => {
      world.log.error(
        { event: 'worker_command_failed', err: error, command: name },
        'worker command failed',
      )
      return refuse('internal')
    })
}

/**
 * Returns the address of the queue that granted a lease, derived from the job's shard and the lease
 * token. Returns undefined when the id or the token is malformed.
 */
export function queueOf(
  edge: WorkerEdge,
  project: string,
  job_id: string,
  lease_token: string,
): AddressOf<'queue'> | undefined {
  const queue = isId(job_id, 'job') ? queueOfLease(lease_token) : undefined
  return queue === undefined ? undefined : queueNamed(edge, project, job_id, queue)
}
/**
 * Returns the address of the queue with this name in a job's shard, or undefined when the id is
 * malformed.
 */
export function queueNamed(
  edge: WorkerEdge,
  project: string,
  job_id: string,
  queue: string,
): AddressOf<'queue'> | undefined {
  const shard = shardOf('run', job_id, edge.world.settings.shards)
  return shard === undefined ? undefined : { project, kind: 'queue', id: `${shard}.${queue}` }
}
/** Returns the address of the `worker` actor of a session: the registry's entry for the worker. */
export const registryOf = (session: Session): AddressOf<'worker'> => ({
  project: session.project,
  kind: 'worker',
  id: session.worker,
})
