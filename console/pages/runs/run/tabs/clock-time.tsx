/** The time of day to the millisecond, for lists of events that follow each other closely. */
import { formatExact } from '../../../../text/format.ts'
import { locale } from '../../../../text/language.ts'

const clock = new Intl.DateTimeFormat(locale, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hour12: false,
})

/** Shows the time of day. The exact time appears on hover. `at` is ISO 8601. */
export const ClockTime = ({ at }: { readonly at: string }) => (
  <time dateTime={at} title={formatExact(Date.parse(at))} class="soft mono">
    {clock.format(new Date(at))}
  </time>
)
