/** Relative times and running durations, which follow the clock. */
import { computed, signal } from '@preact/signals'
import { formatDuration, formatExact, formatRelative, formatTime } from '../text/format.ts'

/** The current time in Unix milliseconds, updated every second while the tab is visible. */
export const now = signal(Date.now())
setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now()
}, 1000)
document.addEventListener('visibilitychange', () => {
  now.value = Date.now()
})

/** Relative times that are closer to the current time than this are shown in seconds. */
const MINUTE_MS = 60_000
/** Interval at which relative times of a minute or more are updated. */
const SLOW_MS = 10_000
/**
 * The current time, updated every `SLOW_MS`. Relative times of a minute or more follow it, so a
 * long list of such times is not re-rendered every second.
 */
const slowNow = computed(() => Math.floor(now.value / SLOW_MS) * SLOW_MS)
const relativeTo = (ms: number): number =>
  Math.abs(now.peek() - ms) < MINUTE_MS
    ? now.value
    : // `slowNow` may lag behind so far that the time would be shown in seconds again.
      Math.max(slowNow.value, ms < now.peek() ? ms + MINUTE_MS : 0)

/** Shows a time. The exact time is shown on hover, and is read by screen readers. */
export function Time({
  at,
  relative = false,
}: {
  /** ISO 8601, or Unix milliseconds. */
  readonly at: string | number
  /** Shows `3 minutes ago` instead of the time of day. */
  readonly relative?: boolean
}) {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  if (Number.isNaN(ms)) return <span class="user-text">{String(at)}</span>
  const shown = relative ? formatRelative(ms, relativeTo(ms)) : formatTime(ms, slowNow.value)
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatExact(ms)}>
      {shown}
    </time>
  )
}

/** Shows the duration from `from` to `to`, or to the current time if `to` is absent. */
export function Duration({
  from,
  to,
}: {
  readonly from: string | number
  readonly to?: string | number | null | undefined
}) {
  const start = new Date(from).getTime()
  const end = to === undefined || to === null ? now.value : new Date(to).getTime()
  return <span>{formatDuration(Math.max(0, end - start))}</span>
}
