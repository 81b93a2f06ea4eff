/**
 * What the parts of the worker socket share: the connections and sessions of this gateway, the listeners for offers, and
 * the way to put a command to an actor on a worker's behalf.
 */
import type { Outcome, World } from '../ports.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { Address, Credential, Principal } from '../../protocol/entry.ts'
import { refuse, type Refusal } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { queueOfLease } from '../../protocol/jobs/lease.ts'
import { shardOf } from '../../protocol/subjects.ts'
import type { Filters } from '../../protocol/workers/socket.ts'
import { answers, type Answers } from './jobs/answers.ts'
import type { Connection } from './connection.ts'
import { sharedWants, type Wants } from './jobs/eligible.ts'
import type { OfferSubscription } from './jobs/offers.ts'
import { TimerWheel } from './timer-wheel.ts'
import type { Session } from './session.ts'
import { openPreviews, type Previews } from '../sessions/transcript/previews.ts'
import { hexOf } from '../http/hex.ts'

/** For whom a connection acts, as its upgrade established, and how to ask whether that still holds. */
export interface Grant {
  /** Project id, and the handle it was named by. */
  readonly project: string
  readonly handle: string
  readonly principal: Principal
  readonly credential?: Credential
  /** Connections with the same key are asked about together. */
  readonly key: string
  /** The refusal that a new connection would get now, if any. */
  recheck(): Promise<Refusal | undefined>
  /** Whether the caller takes no new jobs for now although it may connect: an agent that is not active, or of which that is not known at the moment. Looked at again after each `recheck`. */
  readonly asleep?: () => boolean
}

/** Limits of one connection: frames per second on average and at once; milliseconds for the timers. */
export const limits = {
  frames_per_second: 5000,
  frames_at_once: 20_000,
  /** A socket whose buffer does not drain for this long is closed. */
  drain: 10_000,
  ping: 25_000,
  /** A promised slot is free again, or an undelivered job given back, after this long. */
  reservation: 5000,
  /** How long an answer waits for jobs that were promised together with the ones it has. */
  batch: 5,
  /** Between repetitions of `work.available`, and the least between two that nothing else caused. */
  remind: 5000,
  hint: 1000,
  /** Between looks at whether credentials are still good. */
  recheck: 5000,
  /** How long a stop waits for reports under way. */
  stop: 3000,
  /** Frames kept while a registration is decided, and claims held open. */
  backlog: 256,
  claims: 8,
  /** Pairs of a queue and a capability whose order over shards is remembered, in a project. */
  orders: 256,
} as const

/** Whether a job is work that the service does itself, so that no worker gets it; a refusal when that cannot be known now. */
export type Serves = (project: string, job: JobHeader) => MaybePromise<Served | Refusal>
/** Who does a job. `losses`: how many of its leases may be lost, where that is more than its header says. */
export interface Served {
  readonly byService: boolean
  readonly losses?: number
}

export interface Edge {
  readonly world: World
  readonly serves: Serves
  readonly connections: Set<Connection>
  readonly rounds: TimerWheel
  /** Filters prepared for matching: workers of one kind ask for the same, and share them. */
  readonly wants: (filters: Filters) => Wants
  /** By session id: the newest connection of each. */
  readonly sessions: Map<string, Session>
  readonly markets: Map<string, OfferSubscription>
  readonly answers: Answers
  /** What models say while their workers are here. */
  readonly previews: Previews
  /** Commands under way, which a stop waits for. */
  readonly pending: Set<Promise<unknown>>
  stopping: boolean
}

/** The shared state of a gateway without connections. */
export const openEdge = (world: World, serves: Serves): Edge => ({
  world,
  serves,
  connections: new Set(),
  rounds: new TimerWheel(world),
  wants: sharedWants(),
  sessions: new Map(),
  markets: new Map(),
  answers: answers(() => world.now()),
  previews: openPreviews(world),
  pending: new Set(),
  stopping: false,
})

/** An unguessable text of lower-case hex digits. */
export const secret = (world: World, bytes: number): string => hexOf(world.random(bytes))

/** Put a command to an actor for a worker. A throwing world counts as a refusal, so that callers see one kind of failure. `id` is kept over retries. */
export function command(
  edge: Edge,
  grant: Grant,
  to: Address,
  name: string,
  input: unknown,
  id = secret(edge.world, 12),
): Promise<Outcome> {
  const { world } = edge
  const origin = {
    at: world.now(),
    principal: grant.principal,
    ...(grant.credential && { credential: grant.credential }),
  }
  const outcome = world
    .command({ project: to.project, kind: to.kind, id: to.id, command_id: id, name, input, origin })
    .catch((error: unknown) => {
      world.log.error({ err: error, command: name }, 'a command of a worker failed')
      return refuse('internal')
    })
  return track(edge, outcome)
}

/** Let a stop wait for this. */
export function track<T>(edge: Edge, promise: Promise<T>): Promise<T> {
  const settled: Promise<unknown> = promise.then(
    () => edge.pending.delete(settled),
    () => edge.pending.delete(settled),
  )
  edge.pending.add(settled)
  return promise
}

/** The queue that granted a lease, from the job's shard and the lease's token; undefined when either is not ours. */
export function queueOf(
  edge: Edge,
  project: string,
  job_id: string,
  lease_token: string,
): Address | undefined {
  const queue = isId(job_id, 'job') ? queueOfLease(lease_token) : undefined
  return queue === undefined ? undefined : queueNamed(edge, project, job_id, queue)
}
/** The queue of this name in the job's shard. */
export function queueNamed(
  edge: Edge,
  project: string,
  job_id: string,
  queue: string,
): Address | undefined {
  const shard = shardOf('run', job_id, edge.world.settings.shards)
  return shard === undefined ? undefined : { project, kind: 'queue', id: `${shard}.${queue}` }
}
/** The registry entry of a session's worker instance. */
export const registryOf = (session: Session): Address => ({
  project: session.project,
  kind: 'worker',
  id: session.worker,
})
