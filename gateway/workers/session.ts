/**
 * A registered worker session on this gateway: the jobs it can take, its leases, and its open
 * claims.
 *
 * Invariants:
 * S1. `held` contains the leases of this session as far as the gateway knows them, including those
 *     of jobs in `ready`.
 * S2. Taking a job here never makes held + reserved, without the reported jobs, exceed the
 *     concurrency limit: `room` is checked before a slot is reserved, and a job that arrives
 *     without a reservation is refused when no slot is free.
 * S3. A lease outlives the connection: closing a session gives back only jobs that were never
 *     written to the socket.
 */
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { Connection } from './connection.ts'
import { eligible, type Wants } from './jobs/eligible.ts'
import type { Task } from './timer-wheel.ts'

/**
 * A lease that counts against the session. `until`: when it stops counting unless a sign of life
 * comes; times are Unix milliseconds.
 */
interface Held {
  /**
   * Absent when the lease was granted before this connection, so that the gateway does not know its
   * token.
   */
  readonly token?: string
  until: number
  /** When this connection took over the lease, or last received a sign of life of the job. */
  heard: number
  /** The queue of a lease whose token is unknown here. */
  readonly queue?: string
  /** When a delta last renewed the lease. */
  beaten: number
  /** The agent session to which the generation belongs. */
  readonly session_id?: string
  readonly model?: string
}
/** A leased job that no claim has received yet; `cancel` stops the timer that gives it back. */
export interface Ready {
  readonly job: ClaimedJob
  readonly text: string
  readonly bytes: number
  readonly cancel: () => void
}
/** A claim that is held open; it is due at the end of its poll time. */
export interface Claim extends Task {
  readonly message_id: string | undefined
  readonly wants: Wants
  slots: number
}
/**
 * The claim that a worker is about to send, because its last answer left slots free or it has just
 * ended a job. `since`: Unix milliseconds.
 */
interface Expected {
  readonly wants: Wants
  readonly slots: number
  readonly since: number
}
/** The fields from which a session is created. */
interface Registered {
  readonly id: string
  readonly generation: number
  readonly instance: string
  /** Id of the instance's registry entry. */
  readonly worker: string
  readonly connection: Connection
  readonly concurrency: number
  readonly wants: Wants
  /**
   * Whether leases from before this connection have been counted; until then the session takes no
   * jobs.
   */
  readonly counted: boolean
  readonly draining: boolean
}
/**
 * A worker session. There may be tens of thousands of them, and most hold no job: collections that
 * only a busy session needs are created on first use.
 */
export class Session {
  readonly id: string
  readonly generation: number
  readonly instance: string
  readonly worker: string
  readonly connection: Connection
  readonly concurrency: number
  wants: Wants
  /**
   * The maximum number of jobs that the session may hold: the concurrency limit, or less after a
   * `worker.ready` with fewer slots.
   */
  limit: number
  readonly ready: Ready[] = []
  readonly claims: Claim[] = []
  /**
   * The claim that is expected while none is open, and whether the last expected claim came
   * promptly.
   */
  next: Expected | undefined
  prompt = false
  /** The filters for which this session listens to offers. */
  listening: readonly Wants[] = []
  counted: boolean
  draining: boolean
  closed = false
  /** The filters that the registry has stored, and whether an update is in progress. */
  told: Wants
  notifying = false
  /** The value of the project's job counter when a job was last reserved for this session. */
  served = 0
  /** When `work.available` was last sent, and the cancellation of its next repetition. */
  hinted = 0
  reminder: (() => void) | undefined
  /** Stops the timer that batches jobs into one answer. */
  flushing: (() => void) | undefined
  /** The task that sends its periodic sign of life. */
  beating: Task | undefined
  #held: Map<string, Held> | undefined
  #reported: Set<string> | undefined
  #reserved: Map<string, () => void> | undefined
  #reports: Map<string, (string | undefined)[]> | undefined

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
  }: Registered) {
    this.id = id
    this.generation = generation
    this.instance = instance
    this.worker = worker
    this.connection = connection
    this.concurrency = concurrency
    this.limit = concurrency
    this.wants = wants
    this.told = wants
    this.counted = counted
    this.draining = draining
  }
  get project(): string {
    return this.connection.grant.project
  }
  get held(): Map<string, Held> {
    return (this.#held ??= new Map())
  }
  /**
   * Held jobs that the worker has reported. The worker has ended them, even if the report is not
   * yet decided.
   */
  get reported(): Set<string> {
    return (this.#reported ??= new Set())
  }
  /** Reserved slots by job id; the function stops the timer that frees the slot again. */
  get reserved(): Map<string, () => void> {
    return (this.#reserved ??= new Map())
  }
  /**
   * Reports that their queues have not decided yet, by job and lease: the message ids that wait for
   * the acknowledgement.
   */
  get reports(): Map<string, (string | undefined)[]> {
    return (this.#reports ??= new Map())
  }
  /**
   * The numbers of leases, of jobs that keep the worker busy, and of reserved slots. Reading them
   * creates no collections.
   */
  get leases(): number {
    return this.#held?.size ?? 0
  }
  get busy(): number {
    return this.leases - (this.#reported?.size ?? 0)
  }
  get promised(): number {
    return this.#reserved?.size ?? 0
  }
}

/**
 * The maximum milliseconds until an expected claim that counts as prompt: from a nearby worker that
 * continues to claim.
 */
const PROMPT = 50

/** The number of free slots by the gateway's own count. */
export const free = (session: Session): number => session.limit - session.busy - session.promised

/** Records that a claim with this many slots is expected. */
export function expect(session: Session, wants: Wants, slots: number, since: number): void {
  session.next = { wants, slots, since }
}
/** Records that a claim came: if it was prompt, the next expected claim is trusted. */
export function met(session: Session, now: number): void {
  if (session.next) session.prompt = now - session.next.since <= PROMPT
  session.next = undefined
}
/** The connection received a sign of life of a job, so the worker still has it. */
export function hear(session: Session, job_id: string, lease_token: string, now: number): void {
  const held = session.held.get(job_id)
  if (held && (held.token ?? lease_token) === lease_token) held.heard = now
}

/** Records that the worker reported a job it holds: its slot is free, and a claim is expected. */
export function reported(session: Session, job_id: string, lease_token: string, now: number): void {
  if (session.held.get(job_id)?.token !== lease_token || session.reported.has(job_id)) return
  session.reported.add(job_id)
  if (session.claims.length === 0)
    expect(session, session.next?.wants ?? session.wants, (session.next?.slots ?? 0) + 1, now)
}

/**
 * How many more jobs may be taken for the session now: the slots of its latest claim, or of the
 * expected one if it is trusted, but never more than are free.
 */
export function freeSlots(session: Session, now: number): number {
  const { next, prompt } = session
  const claim =
    session.claims.at(-1) ?? (prompt && next && now - next.since <= PROMPT ? next : undefined)
  if (!claim || !takes(session)) return 0
  return Math.min(claim.slots - session.ready.length - session.promised, free(session))
}
/** Whether an open claim, or else the expected one, matches such a job. */
export const claims = ({ claims, next }: Session, job: JobHeader, queue: string): boolean =>
  claims.length > 0
    ? claims.some(({ wants }) => eligible(job, queue, wants))
    : next !== undefined && eligible(job, queue, next.wants)

/** Whether the session takes any jobs at present. */
export const takes = (session: Session): boolean =>
  session.counted &&
  !session.draining &&
  !session.closed &&
  session.connection.grant.asleep?.() !== true

/** Whether the worker should get the hint to claim: it has no open claim and could take a job. */
export const idle = (session: Session): boolean =>
  takes(session) && session.claims.length === 0 && (free(session) > 0 || session.ready.length > 0)
