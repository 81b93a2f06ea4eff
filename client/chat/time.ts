/** Times as the visitor reads them: in the locale and the zone of the browser, with the exact time behind them. Pure. */

/** How times are written; both are the browser's unless given. */
export interface TimeFormat {
  readonly locale?: string
  readonly timeZone?: string
}

/** The hour of a time of today; date and hour of any other. @param now Unix milliseconds. */
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
/** Date, seconds and zone of a time. */
export const exactTime = (time: string, { locale, timeZone }: TimeFormat = {}): string =>
  new Intl.DateTimeFormat(locale, {
    dateStyle: 'full',
    timeStyle: 'long',
    ...(timeZone !== undefined && { timeZone }),
  }).format(new Date(time))
