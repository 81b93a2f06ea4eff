/**
 * Checks a history for guarantees that the service violated. The functions are pure and depend only
 * on the given history.
 */
import type { History, Manner, Stream } from './history.ts'

export interface Violation {
  readonly kind: Kind
  readonly what: string
}
export const kinds = {
  unacknowledged: 'starts never acknowledged',
  lost: 'acknowledged starts without their run',
  doubled: 'starts that made two runs',
  unfinished: 'runs that have not ended',
  twice: 'runs or steps completed twice',
  ending: 'illegal ends',
  result: 'results of another run',
  key: 'reused keys answered otherwise',
  hole: 'holes in followed streams',
  repeat: 'repeats in followed streams',
  order: 'followed streams out of order or with frames never recorded',
  slow: 'first answers too late after a kill',
  odd: 'answers that may not be',
} as const
export type Kind = keyof typeof kinds

/**
 * The maximum p99 of the waiting times after faults in milliseconds, by kind of fault. A request is
 * counted if it was pending when a fault began, or was sent within `WINDOW` after that.
 */
export const LIMITS: Readonly<Partial<Record<Manner, number>>> = {
  kill: 5000,
  restart: 5000,
  'kill nats': 12_000,
}
/**
 * A request that is sent at most this many milliseconds after a fault began counts as affected by
 * the fault.
 */
export const WINDOW = 5000
const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

export function check(history: History): Violation[] {
  return [
    ...checkStarts(history),
    ...checkCourses(history),
    ...history.streams.flatMap((stream) => [...checkStream(stream)]),
    ...checkWaits(history),
    ...history.oddities.map((what) => ({ kind: 'odd' as const, what })),
  ]
}

function* checkStarts({ starts, repeats, runs }: History): Generator<Violation> {
  const byId = new Map(runs.map((run) => [run.id, run]))
  const byKey = grouped(runs, (run) => run.key)
  const acknowledged = new Map<string, string>()
  for (const { key, acknowledged: answer, ends, cancelled } of starts) {
    const made = byKey.get(key) ?? []
    if (made.length > 1)
      yield { kind: 'doubled', what: `${key}: ${made.map(({ id }) => id).join(' ')}` }
    if (!answer) {
      yield { kind: 'unacknowledged', what: key }
      continue
    }
    acknowledged.set(key, answer.run)
    const run = byId.get(answer.run)
    if (!run || run.key !== key) {
      yield {
        kind: 'lost',
        what: `${key} was answered ${answer.run}, which ${run ? `is a run of ${run.key}` : 'is not on record'}`,
      }
      continue
    }
    if (!ended.has(run.status))
      yield { kind: 'unfinished', what: `${key}: ${run.id} is ${run.status}` }
    else if (!(ends as readonly string[]).includes(run.status))
      yield { kind: 'ending', what: `${key}: ${run.id} is ${run.status}, not ${ends.join(' or ')}` }
    else if (cancelled && run.status !== 'cancelled')
      yield {
        kind: 'ending',
        what: `${key}: ${run.id} is ${run.status} after its cancellation was acknowledged`,
      }
    if (run.result !== undefined && run.result !== key)
      yield { kind: 'result', what: `${key}: ${run.id} has the result of ${run.result}` }
  }
  const known = new Set(starts.map(({ key }) => key))
  for (const { id, key } of runs)
    if (!known.has(key)) yield { kind: 'doubled', what: `${id} belongs to no start (${key})` }
  for (const { key, run, answer } of repeats) {
    if (run !== acknowledged.get(key))
      yield {
        kind: 'key',
        what: `${key} was answered ${acknowledged.get(key)} and then ${run ?? answer}`,
      }
  }
}

function* checkCourses({ settled, runs, courses, retried, steps }: History): Generator<Violation> {
  if (!settled) yield { kind: 'unfinished', what: 'not everything came to rest in time' }
  for (const { id, status } of runs) {
    const course = courses.get(id) ?? []
    if (settled && course.at(-1) !== status)
      yield {
        kind: 'hole',
        what: `the feed ends ${id} as ${course.at(-1) ?? 'nothing'}, its record says ${status}`,
      }
    if (course.filter((one) => one === 'completed').length > 1)
      yield { kind: 'twice', what: `${id}: ${course.join(' ')}` }
    for (const [i, one] of course.entries()) {
      const next = course[i + 1]
      if (!ended.has(one) || next === undefined || (one === 'completed' && next === 'completed'))
        continue
      if (one !== 'failed' || !retried.has(id))
        yield { kind: 'ending', what: `${id} was ${one} and then ${next}` }
    }
  }
  for (const [id, done] of steps) {
    const again = done.filter((key, i) => done.indexOf(key) !== i)
    if (again.length > 0) yield { kind: 'twice', what: `${id} completed ${again.join(', ')} again` }
  }
}

/** Compares the frames of a followed stream with those of a later read. Yields the violations. */
function* checkStream({
  name,
  followed,
  recorded,
  joints = [],
  vain = [],
}: Stream): Generator<Violation> {
  const seen = new Map<string, number>()
  for (const frame of followed) seen.set(frame, (seen.get(frame) ?? 0) + 1)
  const known = new Set(recorded)
  const brief = (frames: readonly string[]) =>
    `${frames.slice(0, 5).join(' ')}${frames.length > 5 ? ` and ${frames.length - 5} more` : ''}`
  /**
   * Describes where a frame is missing: the frames around it, the connection that began there, and
   * the connections without frames.
   */
  const around = (frame: string): string => {
    const at = recorded.indexOf(frame)
    const before = recorded.slice(0, at).findLastIndex((one) => seen.has(one))
    const place = before < 0 ? 0 : followed.indexOf(recorded[before] ?? '') + 1
    const joint = joints.findIndex((one) => Math.abs(one - place) <= 1)
    return (
      `; it came between ${recorded.slice(Math.max(0, at - 3), at).join(' ')} and ` +
      recorded.slice(at + 1, at + 4).join(' ') +
      (joint < 0 ? '' : `, where connection ${joint + 1} began`) +
      (vain.length === 0
        ? ''
        : `; ${vain.length} connections brought nothing, the last of them ${vain.slice(-3).join(', ')}`)
    )
  }
  const missed = recorded.filter((frame) => !seen.has(frame))
  const repeated = [...seen].filter(([, times]) => times > 1).map(([frame]) => frame)
  const invented = [...seen.keys()].filter((frame) => !known.has(frame))
  if (missed.length > 0)
    yield {
      kind: 'hole',
      what: `${name} missed ${missed.length} of ${recorded.length}: ${brief(missed)}${around(missed[0] ?? '')}`,
    }
  if (repeated.length > 0) yield { kind: 'repeat', what: `${name} got again ${brief(repeated)}` }
  if (invented.length > 0)
    yield { kind: 'order', what: `${name} got what is not on record: ${brief(invented)}` }
  const common = [...seen.keys()].filter((frame) => known.has(frame))
  const places = new Map(recorded.map((frame, i) => [frame, i]))
  const back = common.find(
    (frame, i) => i > 0 && (places.get(frame) ?? 0) < (places.get(common[i - 1] ?? '') ?? 0),
  )
  if (back !== undefined) yield { kind: 'order', what: `${name} got ${back} late` }
}

/**
 * Waiting times in milliseconds of requests after faults of one kind: from the beginning of the
 * fault, or from the request if it was sent later, to the response.
 */
export interface Waits {
  readonly manner: Manner
  readonly strikes: number
  readonly requests: number
  /** The longest time from the beginning of a fault to the first response after it. */
  readonly first: number
  readonly p50: number
  readonly p99: number
  readonly longest: number
  /** The fault that was followed by the highest p99. */
  readonly worst: { readonly what: string; readonly at: number; readonly p99: number }
}
const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? 0

const allowed = (manner: Manner): number => LIMITS[manner] ?? Number.POSITIVE_INFINITY

/**
 * Returns waiting times by kind of fault. A fault is excluded if another fault that has a higher
 * limit or no limit was in progress less than `WINDOW` before or after it began, because either of
 * them could be the cause of a delay.
 */
export function waits({ strikes, requests }: Pick<History, 'strikes' | 'requests'>): Waits[] {
  const sorted = [...requests].sort((a, b) => a.at - b.at)
  const found = new Map<
    Manner,
    { strikes: number; first: number; waits: number[]; worst: Waits['worst'] }
  >()
  for (const strike of strikes) {
    if (
      strikes.some(
        (other) =>
          allowed(other.manner) > allowed(strike.manner) &&
          other.at < strike.at + WINDOW &&
          other.until + WINDOW > strike.at,
      )
    )
      continue
    const of = found.get(strike.manner) ?? {
      strikes: 0,
      first: 0,
      waits: [],
      worst: { what: '', at: 0, p99: -1 },
    }
    found.set(strike.manner, of)
    of.strikes++
    let first = Number.POSITIVE_INFINITY
    const own: number[] = []
    for (const { at, done = Number.POSITIVE_INFINITY } of sorted) {
      if (at > strike.at + WINDOW) break
      if (done < strike.at) continue
      first = Math.min(first, done - strike.at)
      own.push(done - Math.max(at, strike.at))
    }
    if (first !== Number.POSITIVE_INFINITY) of.first = Math.max(of.first, first)
    const p99 = quantile(
      own.sort((a, b) => a - b),
      0.99,
    )
    if (p99 > of.worst.p99) of.worst = { what: strike.what, at: strike.at, p99 }
    of.waits.push(...own)
  }
  return [...found].map(([manner, { strikes: count, first, waits: all, worst }]) => {
    all.sort((a, b) => a - b)
    return {
      manner,
      strikes: count,
      requests: all.length,
      first,
      p50: quantile(all, 0.5),
      p99: quantile(all, 0.99),
      longest: all.at(-1) ?? 0,
      worst,
    }
  })
}

function* checkWaits(history: History): Generator<Violation> {
  for (const { manner, p99, requests } of waits(history)) {
    const limit = allowed(manner)
    if (requests > 0 && p99 > limit)
      yield {
        kind: 'slow',
        what: `after a ${manner}, p99 of ${requests} requests is ${Math.round(p99)} ms; ${limit} are allowed`,
      }
  }
}

function grouped<T>(items: readonly T[], by: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(by(item), [...(groups.get(by(item)) ?? []), item])
  return groups
}
