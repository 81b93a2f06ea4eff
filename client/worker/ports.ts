/** What a worker needs of the world: time, chance and sockets. Tests give it their own. */

/** Undo something that was arranged; doing it twice is harmless. */
export type Cancel = () => void

export interface Clock {
  /** Milliseconds from any fixed point. */
  now(): number
  /** Run something once, after so many milliseconds. */
  after(ms: number, run: () => void): Cancel
  /** Evenly distributed in 0 ≤ x < 1. */
  random(): number
  /** A text nobody else makes. */
  unique(): string
}

/** What happens to a socket, in this order: opened or refused at most once, then frames, closed exactly once unless refused. */
export interface SocketEvents {
  opened(): void
  /** The upgrade was answered with this status, or could not be asked for (0). Nothing follows. */
  refused(status: number, reason: string): void
  frame(text: string): void
  /** A ping or a pong came. */
  alive(): void
  closed(code: number, reason: string): void
}
export interface Socket {
  send(text: string): void
  ping(): void
  /** Say goodbye with a code. */
  close(code: number): void
  /** End the connection at once; `closed` or `refused` need not follow. */
  drop(): void
}
/** Open a socket to a URL with headers. */
export type Dial = (
  url: string,
  headers: Readonly<Record<string, string>>,
  events: SocketEvents,
) => Socket

/** The real clock. */
export const systemClock = (unique: () => string): Clock => ({
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  random: Math.random,
  unique,
})
