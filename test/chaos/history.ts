/**
 * The history of a chaos run as plain data: mainly what its clients observed. Times are
 * milliseconds since the load began.
 */

/**
 * A final status that is allowed for the started run. A start allows several statuses if a later
 * request races with the run.
 */
export type Ending = 'completed' | 'cancelled'
/** A request to start a run, repeated under its key until it was acknowledged. */
export interface Start {
  readonly key: string
  readonly at: number
  /** The allowed final statuses of the run. */
  readonly ends: readonly Ending[]
  acknowledged?: { readonly at: number; readonly run: string }
  /** For a run that does not end on its own: whether its cancellation was acknowledged. */
  cancelled?: boolean
}
/** The repetition of a start under the same key, after the start was acknowledged. */
export interface Repeat {
  readonly key: string
  readonly at: number
  /** The run in the response. If the response contains no run, `answer` is the whole response. */
  readonly run?: string
  readonly answer?: string
}
/** A stored run, as it was read at the end. */
export interface Recorded {
  readonly id: string
  readonly status: string
  /** The key of the run's start, as stored in its input. */
  readonly key: string
  /** The key in the run's result; undefined if the result contains none. */
  readonly result?: string
}
/** A stream as followed over several connections, and as returned by a later complete read. */
export interface Stream {
  readonly name: string
  /** The frames as `id/type`, in order of arrival. */
  readonly followed: readonly string[]
  /** The frames of the later read. */
  readonly recorded: readonly string[]
  readonly connections: number
  /** For each connection, the number of frames that had been received when it began. */
  readonly joints?: readonly number[]
  /** Descriptions of connections without frames. */
  readonly vain?: readonly string[]
}
/**
 * A request of a client with all its attempts. `done` is the time of the final response, and is
 * absent if there was none.
 */
export interface Asked {
  readonly at: number
  readonly done?: number
}
export const manners = ['kill', 'kill nats', 'restart', 'pause', 'cut'] as const
/**
 * The kinds of faults. `kill`: a node process is killed. `kill nats`: a NATS server is killed.
 * `restart`: a process is shut down gracefully and started again. `pause`: a process is stopped for
 * a while. `cut`: links are cut.
 */
export type Manner = (typeof manners)[number]
export interface Strike {
  readonly at: number
  /** The time at which the fault was undone: the process runs again, or the link is restored. */
  until: number
  readonly manner: Manner
  readonly what: string
}
export interface History {
  /**
   * Whether no work was in progress before the final read. Otherwise, the feed and the list may
   * reflect different moments.
   */
  readonly settled: boolean
  readonly starts: readonly Start[]
  readonly repeats: readonly Repeat[]
  readonly runs: readonly Recorded[]
  /** Statuses of each run in the order of the project's feed, from the final read. */
  readonly courses: ReadonlyMap<string, readonly string[]>
  /** Runs for which a retry after a failure was requested. */
  readonly retried: ReadonlySet<string>
  /** Keys of completed steps by run, for the runs whose timelines were read at the end. */
  readonly steps: ReadonlyMap<string, readonly string[]>
  readonly streams: readonly Stream[]
  readonly requests: readonly Asked[]
  readonly strikes: readonly Strike[]
  /** Incidents that must not occur, such as 404 for an acknowledged run, or a crashed process. */
  readonly oddities: readonly string[]
}
