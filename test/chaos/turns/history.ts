/**
 * The history of a kill test of turns as plain data: mainly what the clients and the worker
 * observed. Times are milliseconds since the start.
 */
import type { Kind } from './plans.ts'

/** The state of a turn at a point in time. */
export interface Shown {
  readonly status: string
  /** The rows of the turn, in the format of `spell` in plans.ts. */
  readonly rows: readonly string[]
}
/** A message that was repeated under its key until it was answered, and the states of its turn. */
export interface Sent {
  readonly key: string
  readonly kind: Kind
  readonly n: number
  readonly session: number
  readonly at: number
  /** The turn id in the response. */
  turn?: string
  /** The turn ids in the responses to later repeats. */
  readonly again: string[]
  /** The state at the moment when the follower of the session showed the end of the turn. */
  seen?: Shown & { readonly at: number }
  /** The stored state after all faults. */
  recorded?: Shown
}
/** An execution of a tool: when it began, and whether it completed. */
export interface Execution {
  readonly call: string
  readonly at: number
  done: boolean
}
/** A session as followed over several connections, and as returned by later reads. */
export interface Followed {
  readonly session: number
  readonly connections: number
  /** The number of connections that broke. Connections that the server ended are not counted. */
  readonly lost: number
  /** The final state of the follower as a text. */
  readonly folded: string
  /**
   * The stored transcript as a text, read once through each gateway at the end. Equal texts mean
   * equal transcripts.
   */
  readonly fresh: readonly string[]
  /** Turns that were shown as active after their end. */
  readonly back: readonly string[]
}
export interface Strike {
  readonly at: number
  readonly what: string
}
export interface TurnHistory {
  readonly sent: readonly Sent[]
  readonly executions: readonly Execution[]
  readonly followed: readonly Followed[]
  /** The ids of the stored turns, by session. */
  readonly onRecord: ReadonlyMap<number, readonly string[]>
  readonly strikes: readonly Strike[]
  /** Incidents that must not occur, such as a refused request or a failed follower. */
  readonly oddities: readonly string[]
}
