/** Formats numbers, sizes, times, durations and lists for people, in the locale of the page. */
import { locale } from './language.ts'

const number = new Intl.NumberFormat(locale)
const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' })
const clock = new Intl.DateTimeFormat(locale, { timeStyle: 'short' })
const clockSeconds = new Intl.DateTimeFormat(locale, { timeStyle: 'medium' })
const monthDay = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric' })
const longDay = new Intl.DateTimeFormat(locale, { dateStyle: 'full' })
const alternatives = new Intl.ListFormat(locale, { type: 'disjunction' })
const exact = new Intl.DateTimeFormat(locale, {
  dateStyle: 'full',
  timeStyle: 'long',
})

/** Returns a number with separators. */
export const formatNumber = (value: number): string => number.format(value)

/** Returns names joined as alternatives, such as `Ann or Bob`. */
export const formatList = (names: readonly string[]): string => alternatives.format(names)

/** Returns an amount of money in US dollars, with more digits for small amounts. */
export const formatUsd = (value: number): string =>
  new Intl.NumberFormat(locale, {
    style: 'currency',
    currency: 'USD',
    maximumFractionDigits: Math.abs(value) < 1 ? 4 : 2,
  }).format(value)

/**
 * Returns a cost in US dollars. A credit is 0.01 USD.
 * @param milli the cost in thousandths of a credit.
 */
export const formatCost = (milli: number): string => formatUsd(milli / 100_000)

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
/** Returns the full date of a time, with the day of the week. */
export const formatDay = (at: number): string => longDay.format(new Date(at))
/**
 * Returns the label of a tick on a time axis: the day if the ticks are at least a day apart, else
 * the time.
 * @param step distance between ticks in milliseconds.
 */
export const formatMark = (at: number, step: number): string =>
  (step >= 86_400_000 ? monthDay : step < 60_000 ? clockSeconds : clock).format(new Date(at))
/** Returns the exact time with its zone. */
export const formatExact = (at: number): string => exact.format(new Date(at))
