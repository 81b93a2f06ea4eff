/**
 * State of a queue, as plain JSON: the jobs that have not ended, and the ids of the most recently
 * ended jobs. Waiting jobs are ordered as described in waiting-jobs.ts; leased and resting jobs
 * form a heap by deadline. The rules are in queue.ts, outcomes.ts and report.ts.
 */
import type { JobHeader, LeaseGrant } from '../../protocol/jobs/rows.ts'
import { extended } from '../../protocol/rules/extended.ts'
import { add, type Order, removeAt, restoreOrder } from '../heap.ts'
import type { Level } from './waiting-jobs.ts'

/**
 * Number of ended jobs whose ids are remembered, so that repeated reports and enqueues are
 * detected.
 */
const FINISHED = 1024

interface Lease extends LeaseGrant {
  gateway: string
  expires_at: number
  /** Whether the worker has sent a heartbeat, which proves that the job was delivered. */
  heard: boolean
  /**
   * Set if the shard's owner has changed since the last heartbeat. `expires_at` is then an upper
   * bound of the actual expiry.
   */
  assumed?: true
}
export interface Held {
  header: JobHeader
  readonly capability: string
  /** Sequence number of the job's arrival. It breaks ties in `enqueued_at` and survives retries. */
  readonly arrival: number
  failures: number
  losses: number
  /** Number of times that workers returned the job because they were shutting down. */
  shutdowns: number
  /**
   * Index of the job in its heap: the heap of its fairness key while it waits, `due` while it is
   * leased or resting.
   */
  place: number
  lease?: Lease
  /**
   * Set until the environment of the job admits it. Until then, the job is not among the waiting
   * jobs.
   */
  gated?: true
  /**
   * End of the pause before the next attempt, in Unix milliseconds. Until then the job is not among
   * the waiting jobs.
   */
  rest?: number
  /**
   * The previous lease. `reported`: whether the outcome of that lease is known. Any further report
   * under the lease is then a repeat.
   */
  last?: {
    readonly token: string
    readonly attempt: number
    readonly instance: string
    readonly reported: boolean
  }
  /**
   * Present when cancellation was requested, with the time of the request (`at`). The job ends by
   * `until`, even if the worker has sent no report. Both are Unix milliseconds.
   */
  cancel?: { readonly at: number; until: number; readonly reason?: string }
}
export interface QueueState {
  readonly jobs: Record<string, Held>
  arrivals: number
  /** Waiting jobs, highest priority first. */
  readonly levels: Level[]
  /** Leased and resting jobs, a heap by `dueAt`. */
  readonly due: string[]
  readonly finished: { readonly ids: Record<string, true>; readonly ring: string[]; next: number }
}

export const initialQueue = (): QueueState => ({
  jobs: {},
  arrivals: 0,
  levels: [],
  due: [],
  finished: { ids: {}, ring: [], next: 0 },
})

/**
 * Returns the job with this id, or undefined if it has ended or is unknown. The id may be any
 * string, because it can come from a worker.
 */
export const find = (state: QueueState, id: string): Held | undefined =>
  Object.hasOwn(state.jobs, id) ? state.jobs[id] : undefined
/**
 * Returns the number of failed and lost attempts. The next claim begins the attempt with the number
 * after this one.
 */
export const attemptsOf = (held: Held): number => held.failures + held.losses

/**
 * Returns the job's next deadline in Unix milliseconds. For a resting job: the end of its pause.
 * For a leased job: the expiry of its lease, or the time limit of a requested cancellation,
 * whichever is earlier.
 */
export const dueAt = (held: Held): number =>
  held.rest ?? Math.min(held.lease?.expires_at ?? Infinity, held.cancel?.until ?? Infinity)
/** Orders `due` by deadline. */
export const byDue: Order<QueueState, string> = {
  before: ({ jobs }, a, b) => {
    const [x, y] = [jobs[a] as Held, jobs[b] as Held]
    const [atX, atY] = [dueAt(x), dueAt(y)]
    return atX === atY ? x.arrival < y.arrival : atX < atY
  },
  placed: ({ jobs }, id, index) => {
    ;(jobs[id] as Held).place = index
  },
}

/** Puts a job under a lease. */
export function lease(state: QueueState, id: string, grant: LeaseGrant): void {
  const held = state.jobs[id] as Held
  held.lease = extended(grant, { heard: false })
  add(state.due, id, byDue, state)
}
/** Pauses a job until a time in Unix milliseconds. */
export function pauseJob(state: QueueState, id: string, until: number): void {
  ;(state.jobs[id] as Held).rest = until
  add(state.due, id, byDue, state)
}
/** Ends the pause of a job. */
export function endPause(state: QueueState, held: Held): void {
  removeAt(state.due, held.place, byDue, state)
  delete held.rest
}
/** Restores the order of `due` after the deadline of a job has changed. */
export const restoreDueOrder = (state: QueueState, held: Held): void =>
  restoreOrder(state.due, held.place, byDue, state)
/**
 * Ends the lease of a job.
 * @param reported whether the outcome of the lease is known.
 */
export function unlease(state: QueueState, held: Held, reported: boolean): void {
  if (!held.lease) return
  removeAt(state.due, held.place, byDue, state)
  const { token, attempt, instance } = held.lease
  held.last = { token, attempt, instance, reported }
  delete held.lease
}

/** Removes an ended job and remembers only its id. */
export function finish(state: QueueState, id: string): void {
  delete state.jobs[id]
  const { ids, ring } = state.finished
  const oldest = ring[state.finished.next]
  if (oldest !== undefined) delete ids[oldest]
  ring[state.finished.next] = id
  ids[id] = true
  state.finished.next = (state.finished.next + 1) % FINISHED
}
/** Whether the job is among the most recently ended jobs, whose ids are remembered. */
export const isFinished = (state: QueueState, id: string): boolean =>
  Object.hasOwn(state.finished.ids, id)
