/**
 * A registered worker session on this gateway: its slots, its leases, and its open claims. Jobs are
 * chosen in `jobs/offers.ts` and delivered in `jobs/claim.ts`.
 *
 * Invariants:
 * S1. `held` contains the leases of this session that the gateway has learned of, including the
 *     leases of the jobs in `ready`.
 * S2. The gateway takes a job only if `limit` exceeds the number of held, unreported jobs plus the
 *     number of reserved slots. `takeableJobs` is checked before a slot is reserved, and a job that
 *     arrives without a reservation is refused when no slot is free.
 * S3. Leases survive the connection. When a session is closed, only jobs that were never written to
 *     the socket return to their queues.
 */
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import { TransientMap } from '../../protocol/rules/transient-map.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { Connection } from './connection.ts'
import { isEligible, type PreparedFilters } from './jobs/eligible.ts'
import type { Task } from './timer-wheel.ts'

/**
 * A lease that the gateway counts for the session. It is counted until the time `until`, unless it
 * is renewed. Times are those of `World.monotonic`.
 */
export interface Held {
  /**
   * The lease token. Absent when the lease was granted before this connection: such leases are read
   * from the view, which does not have the tokens.
   */
  readonly token?: string
  until: number
  /**
   * The time at which this connection learned of the lease, or last received a frame about the job.
   */
  heard: number
  /** The name of the queue, for a lease without a known token. */
  readonly queue?: string
  /** The time of the grant or of the last heartbeat sent to the queue; 0 when it is unknown. */
  beaten: number
  /** The agent session to which a generation belongs. */
  readonly session_id?: string
  readonly model?: string
  /**
   * Whether the worker has reported the job. It then no longer occupies a slot, although the
   * decision on its report is pending. Set by `Session.markReported`.
   */
  reported?: boolean
}
/**
 * A leased job that has not been delivered to a claim yet. If no claim takes it before this task is
 * due, the job returns to its queue.
 */
export interface Ready extends Task {
  readonly job: ClaimedJob
  readonly text: string
  readonly bytes: number
}
/** The subscription of one interest, and the sessions with free slots that have this interest. */
export interface Listened {
  /** For each session, the number of its filters that contain this interest. */
  readonly sessions: Map<Session, number>
  /** The sessions for which jobs may be taken, the least recently served first. */
  readonly claimants: Set<Session>
  /** The time at which `claimants` last became non-empty, in Unix milliseconds. */
  since: number
  readonly stop: () => void
}
/** An open claim. It is due at the end of its poll time. */
export interface Claim extends Task {
  readonly message_id: string | undefined
  wants: PreparedFilters
  slots: number
}
/**
 * The claim that a worker is expected to send, because its last open claim was answered, or because
 * it has just reported a job. `since` is the time of the answer or the report, in Unix
 * milliseconds.
 */
interface Expected {
  readonly wants: PreparedFilters
  readonly slots: number
  readonly since: number
}
interface Registered {
  readonly id: string
  readonly generation: number
  readonly instance: string
  /** Id of the instance's `worker` actor. */
  readonly worker: string
  readonly connection: Connection
  readonly concurrency: number
  readonly wants: PreparedFilters
  /**
   * Whether the leases from before this connection have been counted. Until then, the session
   * accepts no jobs.
   */
  readonly counted: boolean
  readonly draining: boolean
  /** Whether the worker can open terminals. */
  readonly hasTerminals?: boolean
}
/**
 * A worker session. A gateway may have tens of thousands of sessions, most of them without a job.
 * Collections that only a busy session needs are therefore created on first use.
 */
export class Session {
  readonly id: string
  readonly generation: number
  readonly instance: string
  readonly worker: string
  readonly connection: Connection
  readonly concurrency: number
  readonly hasTerminals: boolean
  wants: PreparedFilters
  /**
   * Maximum number of jobs that the session may execute concurrently: the concurrency limit, or
   * fewer after a `worker.ready` with fewer slots.
   */
  limit: number
  readonly ready: Ready[] = []
  readonly claims: Claim[] = []
  /** The claim that is expected while none is open. */
  next: Expected | undefined
  /** Whether the last expected claim arrived within `PROMPT_MS`. */
  prompt = false
  /** The filters for which this session listens to offers. */
  listening: readonly PreparedFilters[] = []
  /** The subscriptions of these filters. */
  listened: readonly Listened[] = []
  /** Whether the session is among the claimants of these subscriptions. */
  claimant = false
  counted: boolean
  draining: boolean
  closed = false
  /** The filters that the registry has stored. */
  storedFilters: PreparedFilters
  /** Whether the filters in the registry are being updated. */
  notifying = false
  /**
   * The value of the project's counter (`served` in `jobs/choice.ts`) when this session was last
   * chosen for a job.
   */
  served = 0
  /** Time at which `work.available` was last sent. */
  hinted = 0
  /** Cancels the next repetition of `work.available`. */
  reminder: (() => void) | undefined
  /** Cancels the timer that batches jobs into one answer. */
  flushing: (() => void) | undefined
  /** Stops offering terminals; undefined while the worker offers none. */
  unserve: (() => void) | undefined
  /** The timer of the session's periodic beat (`presence.ts`). */
  beating: Task | undefined
  /** Number of slots that are reserved for jobs. Changed by `jobs/offers.ts`. */
  promised = 0
  #held: TransientMap<string, Held> | undefined
  /** Number of held jobs that are reported. */
  #reported = 0
  #reports: TransientMap<string, (string | undefined)[]> | undefined

  constructor({
    id,
    generation,
    instance,
    worker,
    connection,
    concurrency,
    wants,
    counted,
    draining,
    hasTerminals = false,
  }: Registered) {
    this.id = id
    this.generation = generation
    this.instance = instance
    this.worker = worker
    this.connection = connection
    this.concurrency = concurrency
    this.limit = concurrency
    this.wants = wants
    this.storedFilters = wants
    this.counted = counted
    this.draining = draining
    this.hasTerminals = hasTerminals
  }
  get project(): string {
    return this.connection.grant.project
  }
  /** The counted leases by job id. */
  get held(): Pick<TransientMap<string, Held>, 'get' | 'keys'> {
    return this.#held ?? NO_LEASES
  }
  /** Counts a lease, instead of an earlier lease of the same job. */
  hold(job_id: string, lease: Held): void {
    this.#held ??= new TransientMap()
    if (this.#held.get(job_id)?.reported) this.#reported--
    this.#held.set(job_id, lease)
  }
  /** Stops counting the lease of a job. */
  release(job_id: string): void {
    if (this.#held?.get(job_id)?.reported) this.#reported--
    this.#held?.delete(job_id)
  }
  /** Records that the worker has reported the job of a counted lease. */
  markReported(lease: Held): void {
    if (lease.reported) return
    lease.reported = true
    this.#reported++
  }
  /**
   * The reports that are not decided yet, by job and lease. The values are the message ids that are
   * acknowledged with the decision.
   */
  get reports(): TransientMap<string, (string | undefined)[]> {
    return (this.#reports ??= new TransientMap())
  }
  /** Number of leases. */
  get leases(): number {
    return this.#held?.size ?? 0
  }
  /** Number of held jobs that are not reported. */
  get busy(): number {
    return this.leases - this.#reported
  }
}
const NO_LEASES = new TransientMap<string, Held>()

/**
 * Maximum delay in milliseconds at which an expected claim counts as prompt. A worker near the
 * gateway that claims continuously stays below this limit.
 */
const PROMPT_MS = 50

/** Returns the number of free slots, as this gateway counts them. It can be negative. */
export const unusedSlots = (session: Session): number =>
  session.limit - session.busy - session.promised

/** Records that a claim with the given number of slots is expected. */
export function expectClaim(
  session: Session,
  wants: PreparedFilters,
  slots: number,
  since: number,
): void {
  session.next = { wants, slots, since }
}
/**
 * Records that a claim arrived. If it was prompt, jobs may be taken for the next expected claim
 * before that claim arrives.
 */
export function recordClaim(session: Session, now: number): void {
  if (session.next) session.prompt = now - session.next.since <= PROMPT_MS
  session.next = undefined
}
/**
 * Records that the connection received a frame about a job, which shows that the worker still has
 * the job.
 */
export function recordFrame(
  session: Session,
  job_id: string,
  lease_token: string,
  now: number,
): void {
  const held = session.held.get(job_id)
  if (held && (held.token ?? lease_token) === lease_token) held.heard = now
}

/**
 * Records that the worker reported a job that it holds. The slot of the job is then free. If no
 * claim is open, a claim is expected.
 */
export function recordReport(
  session: Session,
  job_id: string,
  lease_token: string,
  now: number,
): void {
  const held = session.held.get(job_id)
  if (held?.token !== lease_token || held.reported) return
  session.markReported(held)
  if (session.claims.length === 0)
    expectClaim(session, session.next?.wants ?? session.wants, (session.next?.slots ?? 0) + 1, now)
}

/**
 * Returns how many more jobs may be taken for the session: the remaining slots of its latest open
 * claim, but at most its unused slots. If no claim is open, the expected claim is used instead for
 * `PROMPT_MS`, provided that the last expected claim was prompt.
 */
export function takeableJobs(session: Session, now: number): number {
  const { next, prompt } = session
  const claim =
    session.claims.at(-1) ?? (prompt && next && now - next.since <= PROMPT_MS ? next : undefined)
  if (!claim || !takesJobs(session)) return 0
  return Math.min(claim.slots - session.ready.length - session.promised, unusedSlots(session))
}
/**
 * Returns whether a job matches an open claim of the session or, without an open claim, its
 * expected claim.
 */
export const matchesClaim = ({ claims, next }: Session, job: JobHeader, queue: string): boolean =>
  claims.length > 0
    ? claims.some(({ wants }) => isEligible(job, queue, wants))
    : next !== undefined && isEligible(job, queue, next.wants)

/** Returns whether the session currently accepts jobs. */
export const takesJobs = (session: Session): boolean =>
  session.counted &&
  !session.draining &&
  !session.closed &&
  session.connection.grant.asleep?.() !== true

/**
 * Returns whether the worker should receive `work.available`: it accepts jobs, has no open claim,
 * and has a free slot or a ready job.
 */
export const needsHint = (session: Session): boolean =>
  takesJobs(session) &&
  session.claims.length === 0 &&
  (unusedSlots(session) > 0 || session.ready.length > 0)
