/** The query for the next times of a schedule, computed from the given text alone. */
import { parseTimestamp, timestamp } from '../../protocol/common.ts'
import { refuseFields } from '../../protocol/errors.ts'
import { nextFire, scheduleFault } from '../../protocol/rules/schedule.ts'
import { answer, type LocalQuery } from '../listing.ts'

const LAST = 253_402_300_799_999
export const scheduleQueries: Readonly<Record<'schedule.next', LocalQuery>> = {
  'schedule.next': answer<'schedule.next'>(
    ({ world }, { cron, interval, timezone, after, count = 5 }) => {
      const schedule = {
        ...(cron !== undefined && { cron }),
        ...(interval !== undefined && { interval }),
        ...(timezone !== undefined && { timezone }),
      }
      const fault = scheduleFault(schedule)
      if (fault) return refuseFields({ ...fault, actual: schedule[fault.field] })
      const from = after === undefined ? world.now() : parseTimestamp(after)
      if (from === undefined)
        return refuseFields({
          field: 'after',
          message: 'must be a date and time with an offset, such as 2031-02-03T04:05:06Z',
          actual: after,
        })
      const items: string[] = []
      for (let at = nextFire(schedule, from, from); at !== undefined && at <= LAST; ) {
        items.push(timestamp(at))
        if (items.length === count) break
        at = nextFire(schedule, at, from)
      }
      return { items }
    },
  ),
}
