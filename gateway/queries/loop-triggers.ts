/**
 * Answers two queries: the triggers of a loop, with the faults of their conditions, and the next
 * times of a schedule. The triggers are read from the loop's actor, and the faults from the
 * project's `events` actor. The times are computed from the request alone.
 */
import { parseTimestamp, timestamp } from '../../protocol/common.ts'
import { isRefusal, refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { nextFire, scheduleFault } from '../../protocol/rules/schedule.ts'
import { loopNamed } from '../commands/loops.ts'
import { type LocalQuery, localQuery } from '../listing.ts'

/** The latest time that a timestamp can state: the end of the year 9999. */
const MAX_TIME_MS = 253_402_300_799_999

/** Handlers of the query rows, by row name. */
export const loopQueries: Readonly<Record<string, LocalQuery>> = {
  'loop.triggers': localQuery<'loop.triggers'>(async ({ world, project = '' }, { id: name }) => {
    const loop_id = await loopNamed(world, project, name)
    if (isRefusal(loop_id)) return loop_id
    const [triggers, faults] = await Promise.all([
      world.ask({ project, kind: 'loop', id: loop_id }, 'triggers', {}),
      world.ask({ project, kind: 'events', id: project }, 'faults', { loop_id }),
    ])
    if (isRefusal(triggers)) return triggers
    if (isRefusal(faults)) return faults
    if (!triggers)
      return refuse('not_found', { resource: 'loop' }, 'There is no such loop in this project.')
    return {
      items: triggers.map((trigger) => {
        const found = getOwn(faults, trigger.id)
        return found
          ? { ...trigger, condition_faults: found.count, last_condition_fault: { ...found.last } }
          : trigger
      }),
    }
  }),
  'schedule.next': localQuery<'schedule.next'>(
    ({ world }, { cron, interval, timezone, since, count = 5 }) => {
      const schedule = {
        ...(cron !== undefined && { cron }),
        ...(interval !== undefined && { interval }),
        ...(timezone !== undefined && { timezone }),
      }
      const fault = scheduleFault(schedule)
      if (fault) return refuseFields({ ...fault, actual: schedule[fault.field] })
      const from = since === undefined ? world.now() : parseTimestamp(since)
      if (from === undefined)
        return refuseFields({
          field: 'since',
          message: 'must be a date and time with an offset, such as 2031-02-03T04:05:06Z',
          actual: since,
        })
      const times: string[] = []
      for (let at = nextFire(schedule, from, from); at !== undefined && at <= MAX_TIME_MS; ) {
        times.push(timestamp(at))
        if (times.length === count) break
        at = nextFire(schedule, at, from)
      }
      return { times }
    },
  ),
}
