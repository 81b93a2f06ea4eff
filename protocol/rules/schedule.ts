/**
 * Computes the times at which schedules fire. A schedule is a cron pattern in a time zone, or an
 * interval that is counted from a fixed time. All times are Unix milliseconds, and no clock is
 * read.
 *
 * Daylight saving time: a pattern with one time of day fires once on every day that it selects. If
 * the clock change skips this time, the pattern fires at the first moment after the gap, even if
 * this moment is on the next date. If the time occurs twice, the pattern fires at the first
 * occurrence. Patterns with several times, such as every quarter of an hour, fire whenever local
 * time matches one of them.
 */
import { Cron } from 'croner'
import { parseDuration } from '../common.ts'
import { localTime } from './local-time.ts'

/**
 * A schedule as clients write it: exactly one of `cron` and `interval`. `timezone` applies to
 * `cron` only and is UTC by default.
 */
export interface Schedule {
  readonly cron?: string
  readonly interval?: string
  readonly timezone?: string
}

/** The minimum interval of a schedule in milliseconds. */
export const MIN_INTERVAL_MS = 10_000
const DESCRIPTORS = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/
/** Patterns whose minute and hour are single numbers, and the descriptors that stand for them. */
const ONE_TIME_OF_DAY = /^\s*(\d+\s+\d+\s|@(?!hourly))/
const ZONE = /^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/
/**
 * 2000-01-01, the start of a leap year, so that even a pattern for 29 February fires soon after it.
 * A pattern that does not fire after this time never fires.
 */
const SOME_TIME = 946_684_800_000

const patternOf = ({ cron = '', timezone = 'UTC' }: Schedule): Cron =>
  new Cron(cron, { timezone, mode: '5-part' })

/** Returns the fault of a schedule with its field, or undefined if the schedule is valid. */
export function scheduleFault(
  schedule: Schedule,
): { readonly field: keyof Schedule; readonly message: string } | undefined {
  const { cron, interval, timezone } = schedule
  if ((cron === undefined) === (interval === undefined))
    return { field: 'cron', message: 'give exactly one of cron and interval' }
  if (interval !== undefined) {
    const length = parseDuration(interval)
    if (timezone !== undefined) return { field: 'timezone', message: 'is allowed only with cron' }
    return length !== undefined && length >= MIN_INTERVAL_MS && Number.isInteger(length)
      ? undefined
      : {
          field: 'interval',
          message: 'must be a duration of at least 10s, in whole milliseconds, such as 15m',
        }
  }
  if (timezone !== undefined && !isZone(timezone))
    return { field: 'timezone', message: 'is not a time zone such as Europe/Berlin' }
  if (cron?.startsWith('@') && !DESCRIPTORS.test(cron))
    return { field: 'cron', message: 'is not a descriptor such as @hourly, @daily or @weekly' }
  try {
    return patternOf(schedule).nextRun(new Date(SOME_TIME)) === null
      ? { field: 'cron', message: 'names a date that does not exist' }
      : undefined
  } catch (error) {
    return {
      field: 'cron',
      message:
        'is not a cron pattern of five fields: ' +
        asWritten((error as Error).message.replace(/^Cron\w*: /, '')).slice(0, 160),
    }
  }
}
/** Corrects a message of croner, which counts days of the month and months from 0. */
const asWritten = (message: string): string =>
  message.replace(
    /^(Invalid value for (?:day|month): )(-?\d+)$/,
    (_, text: string, value: string) => text + (Number(value) + 1),
  )
function isZone(name: string): boolean {
  if (!ZONE.test(name)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/**
 * Returns the first firing after a time, or undefined if the schedule never fires again.
 * @param anchor the time from which intervals are counted.
 */
export function nextFire(schedule: Schedule, after: number, anchor: number): number | undefined {
  if (schedule.interval === undefined)
    return ONE_TIME_OF_DAY.test(schedule.cron ?? '')
      ? nextDaily(schedule, after)
      : patternOf(schedule).nextRun(new Date(after))?.getTime()
  const length = parseDuration(schedule.interval) ?? MIN_INTERVAL_MS
  return anchor + length * Math.max(1, Math.floor((after - anchor) / length) + 1)
}

/**
 * Returns the first firing of a pattern with one time of day. Croner evaluates the pattern without
 * clock changes, because it omits a firing if the gap that contains it ends on the next date.
 */
function nextDaily({ cron = '', timezone = 'UTC' }: Schedule, after: number): number | undefined {
  const { localAt, firstAt } = localTime(timezone)
  const pattern = patternOf({ cron })
  for (let local = localAt(after); ; ) {
    const next = pattern.nextRun(new Date(local))?.getTime()
    if (next === undefined) return undefined
    const at = firstAt(next)
    // In the second pass of a repeated hour, `at` is in the first pass.
    if (at > after) return at
    local = next
  }
}

/**
 * Returns the last firing up to `now`. Uses bisection, so the cost grows only logarithmically with
 * the time since `known`.
 * @param known a firing that is not later than `now`.
 * @param anchor the time from which intervals are counted.
 */
export function latestFire(schedule: Schedule, known: number, now: number, anchor: number): number {
  const next = (after: number): number => nextFire(schedule, after, anchor) ?? Infinity
  if (next(known) > now) return known
  // Invariant: (low, now] contains a firing, and (high, now] contains none.
  let low = known
  let high = now
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2)
    if (next(middle) <= now) low = middle
    else high = middle
  }
  return next(low)
}
