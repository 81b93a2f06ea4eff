/**
 * What a queue remembers, as plain JSON: every job that waits or is leased, the line of the waiting ones, the leased ones
 * by the time at which something must happen to them, and the ids of the jobs that ended last.
 */
import type { JobHeader, LeaseGrant } from '../../protocol/jobs/rows.ts'
import { add, moved, removeAt, type Order } from './heap.ts'
import type { Level } from './waiting-jobs.ts'

/** Ended jobs remembered, to tell a repeated report from one of an unknown job. */
const FINISHED = 1024

interface Lease extends LeaseGrant {
  gateway: string
  expires_at: number
  /** The worker gave a sign of life: the job was delivered. */
  heard: boolean
  /** The owner of the queue changed since the last sign of life, so `expires_at` is an upper bound. */
  assumed?: true
}
export interface Held {
  header: JobHeader
  readonly capability: string
  /** Number of its arrival: breaks ties of `enqueued_at`, and stays over retries. */
  readonly arrival: number
  failures: number
  losses: number
  /** How often a worker gave it back because it was shutting down. */
  shutdowns: number
  /** Its index in the heap it is in: of its fairness key while it waits, of `due` while it is leased. */
  place: number
  lease?: Lease
  /** It waits, but is not in line before this time, Unix milliseconds: the pause before its next attempt. */
  rest?: number
  /** The lease before; `reported`: its outcome is known, so a report under it is a repeat. */
  last?: {
    readonly token: string
    readonly attempt: number
    readonly instance: string
    readonly reported: boolean
  }
  /** A stop was asked for; at `until` the job ends without its worker. */
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

export const initial = (): QueueState => ({
  jobs: {},
  arrivals: 0,
  levels: [],
  due: [],
  finished: { ids: {}, ring: [], next: 0 },
})

/** A job that waits or is leased. The id may be any text: it can come from a worker. */
export const find = (state: QueueState, id: string): Held | undefined =>
  Object.hasOwn(state.jobs, id) ? state.jobs[id] : undefined
/** Number of attempts that were counted; the next claim is one more. */
export const attemptsOf = (held: Held): number => held.failures + held.losses

/** When a leased job needs attention: its lease expires, or the patience with a stop that was asked for ends. A resting one: its pause is over. */
export const dueAt = (held: Held): number =>
  held.rest ?? Math.min(held.lease?.expires_at ?? Infinity, held.cancel?.until ?? Infinity)
/** The order of `due`. */
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

/** Put a job under a lease. */
export function lease(state: QueueState, id: string, grant: LeaseGrant): void {
  const held = state.jobs[id] as Held
  held.lease = { ...grant, heard: false }
  add(state.due, id, byDue, state)
}
/** Keep a waiting job out of line for a while. */
export function rest(state: QueueState, id: string, until: number): void {
  ;(state.jobs[id] as Held).rest = until
  add(state.due, id, byDue, state)
}
/** End its pause. */
export function unrest(state: QueueState, held: Held): void {
  removeAt(state.due, held.place, byDue, state)
  delete held.rest
}
/** Restore the order after a lease was renewed or a stop was asked for. */
export const dueMoved = (state: QueueState, held: Held): void =>
  moved(state.due, held.place, byDue, state)
/** End the lease of a job. */
export function unlease(state: QueueState, held: Held, reported: boolean): void {
  if (!held.lease) return
  removeAt(state.due, held.place, byDue, state)
  const { token, attempt, instance } = held.lease
  held.last = { token, attempt, instance, reported }
  delete held.lease
}

/** Forget a job that ended, except that it ended. */
export function finish(state: QueueState, id: string): void {
  delete state.jobs[id]
  const { ids, ring } = state.finished
  const oldest = ring[state.finished.next]
  if (oldest !== undefined) delete ids[oldest]
  ring[state.finished.next] = id
  ids[id] = true
  state.finished.next = (state.finished.next + 1) % FINISHED
}
/** Whether the job is one of those that ended last. */
export const isFinished = (state: QueueState, id: string): boolean =>
  Object.hasOwn(state.finished.ids, id)
