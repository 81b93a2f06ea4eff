/**
 * Pure functions that format times in the browser's locale and zone, in a short and an exact form.
 */

/** Format options. Both default to the browser's settings. */
export interface TimeFormat {
  readonly locale?: string
  readonly timeZone?: string
}

/**
 * Returns the time of day for a time on the current day, otherwise date and time of day.
 * @param now Unix milliseconds.
 */
export function shortTime(
  time: string,
  now: number,
  { locale, timeZone }: TimeFormat = {},
): string {
  const zone = timeZone === undefined ? {} : { timeZone }
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', ...zone })
  const at = new Date(time)
  return new Intl.DateTimeFormat(locale, {
    ...(day.format(at) !== day.format(now) && { dateStyle: 'medium' }),
    timeStyle: 'short',
    ...zone,
  }).format(at)
}
/** Returns a time with date, seconds and zone. */
export const exactTime = (time: string, { locale, timeZone }: TimeFormat = {}): string =>
  new Intl.DateTimeFormat(locale, {
    dateStyle: 'full',
    timeStyle: 'long',
    ...(timeZone !== undefined && { timeZone }),
  }).format(new Date(time))
