/** What the clients of a chaos run saw, as plain data: times are milliseconds since the load began. */

/** How a run may end that nobody disturbs: the one status, or any of several when a request races with the work. */
export type Ending = 'completed' | 'cancelled'
/** A request to start a run, repeated under its key until it was acknowledged. */
export interface Start {
  readonly key: string
  readonly at: number
  /** Statuses in which its run may end. */
  readonly ends: readonly Ending[]
  /** When and with which run it was acknowledged. */
  acknowledged?: { readonly at: number; readonly run: string }
  /** A cancellation of the run was acknowledged although the run could not end otherwise. */
  cancelled?: boolean
}
/** A start that was repeated under its key after it had been acknowledged. */
export interface Repeat {
  readonly key: string
  readonly at: number
  /** The run that was answered; else what was answered instead. */
  readonly run?: string
  readonly answer?: string
}
/** A run on record at the end. */
export interface Recorded {
  readonly id: string
  readonly status: string
  /** Key of the start that it says it comes from. */
  readonly key: string
  /** What the result names as the key; undefined when there is no result. */
  readonly result?: string
}
/** A stream as it was followed over any number of connections, and as a fresh reading from its beginning gives it afterwards. */
export interface Stream {
  readonly name: string
  /** What names each frame, in the order of arrival. */
  readonly followed: readonly string[]
  /** The same part of the fresh reading. */
  readonly recorded: readonly string[]
  readonly connections: number
  /** How many frames had come when each connection began. */
  readonly joints?: readonly number[]
  /** Connections that brought nothing, in words. */
  readonly vain?: readonly string[]
}
/** A request of a client with all its tries. `done` is when it was answered for good; absent: never. */
export interface Asked {
  readonly at: number
  readonly done?: number
}
export const manners = ['kill', 'kill nats', 'restart', 'pause', 'cut'] as const
/** What was done to whom: `kill` is the death of one of our processes, `restart` its orderly end. */
export type Manner = (typeof manners)[number]
export interface Strike {
  readonly at: number
  /** When it was undone: the process runs again, the link stands again. */
  until: number
  readonly manner: Manner
  readonly what: string
}
export interface History {
  /** Whether everything had come to rest before it was read; else the end of the feed and the list may differ in time. */
  readonly settled: boolean
  readonly starts: readonly Start[]
  readonly repeats: readonly Repeat[]
  readonly runs: readonly Recorded[]
  /** Statuses of each run in the order of the project's feed, read afresh at the end. */
  readonly courses: ReadonlyMap<string, readonly string[]>
  /** Runs of which a retry after failure was asked for. */
  readonly retried: ReadonlySet<string>
  /** Step keys that were completed, by run, as their timelines say at the end; for the runs that were looked at. */
  readonly steps: ReadonlyMap<string, readonly string[]>
  readonly streams: readonly Stream[]
  readonly requests: readonly Asked[]
  readonly strikes: readonly Strike[]
  /** Answers that no request of the load may get, such as a 404 for a run that was acknowledged. */
  readonly oddities: readonly string[]
}
