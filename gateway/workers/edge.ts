/**
 * The shared state of the worker socket: connections and sessions of this gateway, listeners for
 * offers, and the function that sends a command to an actor for a worker.
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
import { hexOf } from '../http/hex.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Outcome, World } from '../ports.ts'
import { openPreviews, type Previews } from '../sessions/transcript/previews.ts'
import type { Connection } from './connection.ts'
import { type Answers, answers } from './jobs/answers.ts'
import { sharedWants, type Wants } from './jobs/eligible.ts'
import type { OfferSubscription } from './jobs/offers.ts'
import type { Session } from './session.ts'
import { TimerWheel } from './timer-wheel.ts'

/**
 * The principal for which a connection acts, as established by its upgrade, and a function that
 * checks whether it still has access.
 */
export interface Grant {
  /** The project id, and the handle that the request used. */
  readonly project: string
  readonly handle: string
  readonly principal: Principal
  readonly credential?: Credential
  /** Connections with the same key are rechecked together. */
  readonly key: string
  /** Returns the refusal that a new connection would get now, if any. */
  recheck(): Promise<Refusal | undefined>
  /**
   * Whether the caller gets no new jobs at present although it may connect: an agent that is
   * inactive, or whose status is unknown at the moment. Evaluated again after each `recheck`.
   */
  readonly asleep?: () => boolean
}

/**
 * Limits of the worker socket. `frames_per_second` is the average rate of a connection and
 * `frames_at_once` its burst; times are milliseconds.
 */
export const limits = {
  frames_per_second: 5000,
  frames_at_once: 20_000,
  /** A socket whose buffer does not drain for this long is closed. */
  drain: 10_000,
  ping: 25_000,
  /** A reserved slot is freed, or an undelivered job given back, after this time. */
  reservation: 5000,
  /** How long an answer waits for further reserved jobs, to send them with those it has. */
  batch: 5,
  /**
   * `remind`: interval between repetitions of `work.available`. `hint`: the least time from the
   * last `work.available` to a reminder.
   */
  remind: 5000,
  hint: 1000,
  /** Interval between checks of whether credentials are still valid. */
  recheck: 5000,
  /** How long a stop waits for commands in progress. */
  stop: 3000,
  /**
   * The maximum number of frames buffered during a registration, and of open claims of a session.
   */
  backlog: 256,
  claims: 8,
  /**
   * The maximum number of (queue, capability) pairs per project whose order over shards is kept.
   */
  orders: 256,
} as const

/**
 * Returns whether the service does a job itself, so that no worker gets it; a refusal when that
 * cannot be determined now.
 */
export type Serves = (project: string, job: JobHeader) => MaybePromise<Served | Refusal>
/**
 * Whether a worker or the service does a job. `losses`: how many of its leases may be lost, if more
 * than its header allows.
 */
export interface Served {
  readonly byService: boolean
  readonly losses?: number
}

export interface Edge {
  readonly world: World
  readonly serves: Serves
  readonly connections: Set<Connection>
  readonly timerWheel: TimerWheel
  /** Returns filters prepared for matching. Workers with equal filters share one object. */
  readonly wants: (filters: Filters) => Wants
  /** The newest connection of each session, by session id. */
  readonly sessions: Map<string, Session>
  readonly markets: Map<string, OfferSubscription>
  readonly answers: Answers
  /** Publishes the output of models while their workers are connected to this gateway. */
  readonly previews: Previews
  /** Commands in progress, which a stop waits for. */
  readonly pending: Set<Promise<unknown>>
  stopping: boolean
}

/** Returns the initial state of a gateway, without connections. */
export const openEdge = (world: World, serves: Serves): Edge => ({
  world,
  serves,
  connections: new Set(),
  timerWheel: new TimerWheel(world),
  wants: sharedWants(),
  sessions: new Map(),
  markets: new Map(),
  answers: answers(() => world.now()),
  previews: openPreviews(world),
  pending: new Set(),
  stopping: false,
})

/** Returns unguessable lower-case hex digits. @param bytes how many random bytes they encode. */
export const secret = (world: World, bytes: number): string => hexOf(world.random(bytes))

/**
 * Sends a command to an actor on behalf of a worker. An exception is logged and returned as an
 * `internal` refusal, so that callers handle one kind of failure.
 * @param id the command id; retries must pass the same one.
 */
export function command<K extends 'queue' | 'worker', N extends CommandName<K>>(
  edge: Edge,
  grant: Grant,
  to: AddressOf<K>,
  name: N,
  input: CommandInput<K, N>,
  id = secret(edge.world, 12),
): Promise<Outcome<CommandReply<K, N>>> {
  const { world } = edge
  const origin = {
    at: world.now(),
    principal: grant.principal,
    ...(grant.credential && { credential: grant.credential }),
  }
  const outcome = world
    .command({ project: to.project, kind: to.kind, id: to.id, command_id: id, name, input, origin })
    .catch((error: unknown) => {
      world.log.error(
        { event: 'worker_command_failed', err: error, command: name },
        'worker command failed',
      )
      return refuse('internal')
    })
  return track(edge, outcome)
}

/** Makes a stop wait for this promise. */
export function track<T>(edge: Edge, promise: Promise<T>): Promise<T> {
  const settled: Promise<unknown> = promise.then(
    () => edge.pending.delete(settled),
    () => edge.pending.delete(settled),
  )
  edge.pending.add(settled)
  return promise
}

/**
 * The queue that granted a lease, from the job's shard and the lease token; undefined when either
 * is malformed.
 */
export function queueOf(
  edge: Edge,
  project: string,
  job_id: string,
  lease_token: string,
): AddressOf<'queue'> | undefined {
  const queue = isId(job_id, 'job') ? queueOfLease(lease_token) : undefined
  return queue === undefined ? undefined : queueNamed(edge, project, job_id, queue)
}
/** The queue of this name in the job's shard. */
export function queueNamed(
  edge: Edge,
  project: string,
  job_id: string,
  queue: string,
): AddressOf<'queue'> | undefined {
  const shard = shardOf('run', job_id, edge.world.settings.shards)
  return shard === undefined ? undefined : { project, kind: 'queue', id: `${shard}.${queue}` }
}
/** The registry entry of a session's worker instance. */
export const registryOf = (session: Session): AddressOf<'worker'> => ({
  project: session.project,
  kind: 'worker',
  id: session.worker,
})
