/**
 * A registered worker session on this gateway: what it can take, what it holds, what it waits for.
 *
 * Invariants:
 * S1. `held` are the leases of this session as far as the gateway knows; jobs in `ready` are among them.
 * S2. held + reserved, without what the worker has reported, never exceeds the concurrency limit through anything taken
 *     here: `room` is asked before a slot is reserved, and a job that arrives without a reservation is refused when no slot
 *     is free.
 * S3. A lease outlives the connection: closing a session gives back only jobs that were never written to the socket.
 */
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { Connection } from './connection.ts'
import { eligible, type Wants } from './jobs/eligible.ts'
import type { Task } from './timer-wheel.ts'

/** A lease counted against the session. `until`: when it stops counting without a sign of life; times in Unix ms. */
interface Held {
  /** Absent when the lease was granted before this connection, so that its token is not known here. */
  readonly token?: string
  until: number
  /** When this connection took the lease over, or last carried a sign of life of the job. */
  heard: number
  /** Queue of a lease whose token is not known here. */
  readonly queue?: string
  /** When a delta was last passed on as a sign of life. */
  beaten: number
  /** The agent session whose generation it is. */
  readonly session_id?: string
  readonly model?: string
}
/** A leased job that no claim has taken yet; `cancel` stops the timer that gives it back. */
export interface Ready {
  readonly job: ClaimedJob
  readonly text: string
  readonly bytes: number
  readonly cancel: () => void
}
/** A claim that is held open; it is due when its poll time ends. */
export interface Claim extends Task {
  readonly message_id: string | undefined
  readonly wants: Wants
  slots: number
}
/** The claim that a worker is about to send, because it was told that slots are left or has just ended a job. `since`: Unix ms. */
interface Expected {
  readonly wants: Wants
  readonly slots: number
  readonly since: number
}
/** What a session is made of. */
interface Registered {
  readonly id: string
  readonly generation: number
  readonly instance: string
  /** Id of the instance's registry entry. */
  readonly worker: string
  readonly connection: Connection
  readonly concurrency: number
  readonly wants: Wants
  /** Whether leases from before this connection have been counted; until then nothing is taken. */
  readonly counted: boolean
  readonly draining: boolean
}
/** Most sessions hold nothing, and there may be tens of thousands: what only busy ones need is made when they need it. */
export class Session {
  readonly id: string
  readonly generation: number
  readonly instance: string
  readonly worker: string
  readonly connection: Connection
  readonly concurrency: number
  wants: Wants
  /** Jobs it may hold at once: the concurrency limit, or less after a `worker.ready` that said so. */
  limit: number
  readonly ready: Ready[] = []
  readonly claims: Claim[] = []
  /** The claim that is expected while none is outstanding, and whether the last one that was came promptly. */
  next: Expected | undefined
  prompt = false
  /** Which wants this session listens to offers for. */
  listening: readonly Wants[] = []
  counted: boolean
  draining: boolean
  closed = false
  /** What the registry knows that it takes, and whether it is being told. */
  told: Wants
  telling = false
  /** When it was last given a job, as the number of jobs that its project had been given by then. */
  served = 0
  /** When `work.available` was last sent, and how to stop the next repetition. */
  hinted = 0
  reminder: (() => void) | undefined
  /** Stops the timer that batches jobs into one answer. */
  flushing: (() => void) | undefined
  /** Its periodic sign of life. */
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
  /** Which of the held jobs the worker has reported: it has ended them, whatever becomes of the report. */
  get reported(): Set<string> {
    return (this.#reported ??= new Set())
  }
  /** Slots promised to offers, by job id; the function stops the timer that frees the slot again. */
  get reserved(): Map<string, () => void> {
    return (this.#reserved ??= new Map())
  }
  /** Reports on their way to their queues, by job and lease: the message ids that wait for the acknowledgement. */
  get reports(): Map<string, (string | undefined)[]> {
    return (this.#reports ??= new Map())
  }
  /** How many leases it holds, how many jobs its worker is busy with, and how many slots are promised: said without making anything. */
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

/** Milliseconds within which a claim that is expected comes from a worker that is near and goes on claiming. */
const PROMPT = 50

/** Slots free by the gateway's own count. */
export const free = (session: Session): number => session.limit - session.busy - session.promised

/** Expect a claim for so many slots. */
export function expect(session: Session, wants: Wants, slots: number, since: number): void {
  session.next = { wants, slots, since }
}
/** A claim came: whether it was prompt says what is to be thought of the next one that is expected. */
export function met(session: Session, now: number): void {
  if (session.next) session.prompt = now - session.next.since <= PROMPT
  session.next = undefined
}
/** The connection carried a sign of life of a job: it has not left its worker. */
export function hear(session: Session, job_id: string, lease_token: string, now: number): void {
  const held = session.held.get(job_id)
  if (held && (held.token ?? lease_token) === lease_token) held.heard = now
}

/** The worker reported a job that it holds: its slot is free, and it claims again. */
export function reported(session: Session, job_id: string, lease_token: string, now: number): void {
  if (session.held.get(job_id)?.token !== lease_token || session.reported.has(job_id)) return
  session.reported.add(job_id)
  if (session.claims.length === 0)
    expect(session, session.next?.wants ?? session.wants, (session.next?.slots ?? 0) + 1, now)
}

/** How many more jobs may be taken for the session now: what its latest claim asks for, or the next one may be trusted to, and never more than is free. */
export function room(session: Session, now: number): number {
  const { next, prompt } = session
  const claim =
    session.claims.at(-1) ?? (prompt && next && now - next.since <= PROMPT ? next : undefined)
  if (!claim || !takes(session)) return 0
  return Math.min(claim.slots - session.ready.length - session.promised, free(session))
}
/** Whether an outstanding claim, or the next one, is for such a job. */
export const claims = ({ claims, next }: Session, job: JobHeader, queue: string): boolean =>
  claims.length > 0
    ? claims.some(({ wants }) => eligible(job, queue, wants))
    : next !== undefined && eligible(job, queue, next.wants)

/** Whether the session takes work at all. */
export const takes = (session: Session): boolean =>
  session.counted &&
  !session.draining &&
  !session.closed &&
  session.connection.grant.asleep?.() !== true

/** Whether the session should be told to claim: it has nothing outstanding and could take something. */
export const idle = (session: Session): boolean =>
  takes(session) && session.claims.length === 0 && (free(session) > 0 || session.ready.length > 0)
