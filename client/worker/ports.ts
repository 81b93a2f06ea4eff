/** The external dependencies of a worker: time, random numbers and sockets. Tests replace them. */

/** Cancels a scheduled call. A second cancellation has no effect. */
export type Cancel = () => void

export interface Clock {
  /** Milliseconds since an arbitrary fixed time. */
  now(): number
  /** Calls a function once, after the given milliseconds. */
  after(ms: number, run: () => void): Cancel
  /** Returns a random number, uniformly distributed in 0 ≤ x < 1. */
  random(): number
  /** Returns a globally unique string. */
  unique(): string
}

/**
 * Events of a socket. The first event is `opened` or `refused`. After `opened`, any number of
 * `frame` and `alive` events follow, and `closed` is the last event. A socket that is dropped need
 * not report any further event.
 */
export interface SocketEvents {
  opened(): void
  /**
   * Called when the upgrade is rejected with this status, or the connection fails (0). No event
   * follows.
   */
  refused(status: number, reason: string): void
  frame(text: string): void
  /** Called when a ping or a pong arrives. */
  alive(): void
  closed(code: number, reason: string): void
}
export interface Socket {
  send(text: string): void
  /** Whether everything that was sent has left the process. */
  drained(): boolean
  ping(): void
  /** Closes the connection with a WebSocket close code. */
  close(code: number): void
  /** Ends the connection immediately. No further event is guaranteed. */
  drop(): void
}
/**
 * Opens a socket to a URL with headers.
 * @throws Error if the URL or a header is invalid.
 */
export type Dial = (
  url: string,
  headers: Readonly<Record<string, string>>,
  events: SocketEvents,
) => Socket

/** Returns the clock of the process. `unique` generates the unique strings. */
export const systemClock = (unique: () => string): Clock => ({
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  random: Math.random,
  unique,
})
