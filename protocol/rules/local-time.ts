/**
 * Converts between times and the local time of a time zone. Times are Unix milliseconds. A local
 * time is the Unix time at which a clock in UTC shows the same date and time of day.
 */

/** The conversions of one time zone. */
export interface LocalTime {
  /** Returns the local time at a time. */
  localAt(at: number): number
  /**
   * Returns the first time at which the local clock shows `local` or a later time: the first
   * occurrence of a local time that occurs twice, and the first moment after the gap for one that
   * is missing.
   */
  firstAt(local: number): number
}

/** Longer than the largest offset from UTC. */
const DAY_MS = 86_400_000
const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/

/**
 * Returns the conversions of a time zone.
 * @throws RangeError when the time zone is unknown.
 */
export function localTime(timeZone: string): LocalTime {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  const offsetAt = (at: number): number => {
    const [, sign, hours, minutes, seconds = 0] = OFFSET.exec(format.format(at)) ?? []
    if (sign === undefined) return 0
    const length = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
    return (sign === '-' ? -length : length) * 1000
  }
  return {
    localAt: (at) => at + offsetAt(at),
    firstAt(local) {
      // At most one clock change is assumed between these two offsets.
      const before = offsetAt(local - DAY_MS)
      const after = offsetAt(local + DAY_MS)
      const early = local - before
      if (before === after || offsetAt(early) === before) return early
      const late = local - after
      if (offsetAt(late) === after) return late
      // The local time is in the gap: the clock changes between `late` and `early`.
      let [low, high] = [late, early]
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2)
        if (offsetAt(middle) === before) low = middle
        else high = middle
      }
      return high
    },
  }
}
