/** Numbers, sizes, times and durations for people, in the locale of the browser. */

const number = new Intl.NumberFormat()
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' })
const exact = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'full',
  timeStyle: 'long',
})

/** Returns a number with separators. */
export const formatNumber = (value: number): string => number.format(value)

/** Returns an amount of money in US dollars, with more digits for small amounts. */
export const formatUsd = (value: number): string =>
  new Intl.NumberFormat(undefined, {
    style: 'currency',
    currency: 'USD',
    maximumFractionDigits: Math.abs(value) < 1 ? 4 : 2,
  }).format(value)

/** Returns a number of bytes in a readable unit, with powers of 1,024. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let at = 0
  let value = bytes
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024
    at++
  }
  return `${number.format(at === 0 ? value : Number(value.toPrecision(3)))} ${units[at]}`
}

/** Returns a duration, such as `850 ms`, `12.4 s`, `3 min 20 s` or `2 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${number.format(Number((ms / 1000).toFixed(1)))} s`
  const seconds = Math.round(ms / 1000)
  const parts: readonly (readonly [number, string])[] = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ]
  const first = parts.findIndex(([size]) => seconds >= size)
  const [size, unit] = parts[first] ?? [1, 's']
  const [nextSize, nextUnit] = parts[first + 1] ?? [1, '']
  const rest = Math.floor((seconds % size) / nextSize)
  const whole = `${Math.floor(seconds / size)} ${unit}`
  return nextUnit === '' || rest === 0 ? whole : `${whole} ${rest} ${nextUnit}`
}

/** Returns a time relative to `now` (milliseconds), such as `3 minutes ago`. */
export function formatRelative(at: number, now: number): string {
  const seconds = (at - now) / 1000
  const size = Math.abs(seconds)
  if (size < 5) return relative.format(0, 'second')
  if (size < 60) return relative.format(Math.round(seconds), 'second')
  if (size < 3600) return relative.format(Math.round(seconds / 60), 'minute')
  if (size < 86_400) return relative.format(Math.round(seconds / 3600), 'hour')
  return relative.format(Math.round(seconds / 86_400), 'day')
}
/** Returns the time of day, preceded by the date when the day is not that of `now`. */
export function formatTime(at: number, now: number): string {
  const date = new Date(at)
  const today = new Date(now).toDateString() === date.toDateString()
  return today ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`
}
/** Returns the exact time with its zone. */
export const formatExact = (at: number): string => exact.format(new Date(at))
