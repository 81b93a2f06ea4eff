/**
 * Followers in a process of their own: what they cost is not the server's. They open their streams, say so, and count between
 * `begin` and `end` how late each event is. Both ends of that conversation are here.
 */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { endWithUs } from '../../nodes/process/ending.ts'

/** What the process says. `counts[n]`: events that were n milliseconds late, the last one for all above. */
type Told =
  | { readonly ready: true }
  | { readonly counts: readonly number[]; readonly events: number }
/** How late events were, in milliseconds. */
export interface Lateness {
  readonly events: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}
interface Crowd {
  readonly pid: number
  /** Resolves when it is ready, at first or after what it was told. */
  ready(told?: unknown): Promise<void>
  /** Count while something is done. */
  counting<T>(work: () => Promise<T>): Promise<{ result: T; lateness: Lateness }>
  stop(): void
}

/** The value that a share of the counted ones does not exceed, in a histogram with a bucket for each millisecond. */
function shareOf(counts: readonly number[], share: number): number {
  const total = counts.reduce((sum, n) => sum + n, 0)
  let seen = 0
  return counts.findIndex((n) => (seen += n) >= total * share)
}

/** Start a process of followers. @param file beside this one. */
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
/** In the process of the followers: say that they are ready. */
export const sayReady = () => tell({ ready: true })
/**
 * In the process of the followers: count lateness whenever that is asked for.
 * @param other hears what else it is told. @returns counts an event that bears this time (Unix milliseconds); absent while nobody asks.
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
