/**
 * Runs followers in a separate process, so that their cost does not count as the server's. They
 * open their streams, report that they are ready, and record the delay of each event between
 * `begin` and `end`. This module contains both sides of the protocol.
 */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { endWithUs } from '../../nodes/process/ending.ts'

/**
 * Messages from the followers' process. `counts[n]` is the number of events with a delay of n
 * milliseconds. The last element also counts all longer delays.
 */
type Told =
  | { readonly ready: true }
  | { readonly counts: readonly number[]; readonly events: number }
/** Number of events, and their delays in milliseconds. */
export interface Lateness {
  readonly events: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}
interface Crowd {
  readonly pid: number
  /** Sends `message`, if given, and resolves when the followers are ready. */
  ready(message?: unknown): Promise<void>
  /** Records delays while `work` is running. */
  counting<T>(work: () => Promise<T>): Promise<{ result: T; lateness: Lateness }>
  stop(): void
}

/** Returns a quantile of delays, from a histogram with one bucket per millisecond. */
function shareOf(counts: readonly number[], share: number): number {
  const total = counts.reduce((sum, n) => sum + n, 0)
  let seen = 0
  return counts.findIndex((n) => (seen += n) >= total * share)
}

/**
 * Starts the process of the followers.
 * @param file module in this folder.
 */
export function startCrowd(file: string, args: readonly string[]): Crowd {
  const child = fork(join(import.meta.dirname, file), args)
  endWithUs(child)
  const told = () =>
    new Promise<Told>((done, failed) => {
      child.once('message', (message) => done(message as Told))
      child.once('exit', (code) =>
        failed(new Error(`the process of the followers ended (${code})`)),
      )
    })
  return {
    pid: child.pid ?? 0,
    ready: async (message) => {
      const answer = told()
      if (message !== undefined) child.send(message as object)
      await answer
    },
    counting: async (work) => {
      child.send('begin')
      const result = await work()
      const answer = told()
      child.send('end')
      const said = await answer
      if (!('counts' in said)) throw new Error('the followers told something else')
      const { counts, events } = said
      return {
        result,
        lateness: {
          events,
          p50: shareOf(counts, 0.5),
          p99: shareOf(counts, 0.99),
          max: counts.findLastIndex((n) => n > 0),
        },
      }
    },
    stop: () => {
      child.kill()
    },
  }
}

const BUCKETS = 10_000
const tell = (told: Told) => process.send?.(told)
/** Tells the parent process that the followers are ready. */
export const sayReady = () => tell({ ready: true })
/**
 * Counts the delays of events in the followers' process. The message `begin` of the parent process
 * starts a measurement. The message `end` stops the measurement and sends the counts to the parent.
 * @param other receives all other messages.
 * @returns an object whose `count` records an event that was sent and received at the given times
 * (Unix milliseconds); `count` is undefined outside of a measurement.
 */
export function openCount(other: (message: unknown) => void = () => {}): {
  readonly count: ((sent: number, now: number) => void) | undefined
} {
  let counts = new Array<number>(BUCKETS).fill(0)
  let events = 0
  const count = (sent: number, now: number) => {
    const late = Math.min(Math.max(now - sent, 0), BUCKETS - 1)
    counts[late] = (counts[late] ?? 0) + 1
    events++
  }
  const open: { count: typeof count | undefined } = { count: undefined }
  process.on('message', (message) => {
    if (message !== 'begin' && message !== 'end') return other(message)
    open.count = message === 'begin' ? count : undefined
    if (message === 'end') tell({ counts, events })
    counts = new Array<number>(BUCKETS).fill(0)
    events = 0
  })
  process.once('disconnect', () => process.exit(0))
  return open
}
