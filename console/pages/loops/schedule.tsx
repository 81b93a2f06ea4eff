/** The next times at which a schedule fires. */
import { scheduleFault } from '../../../protocol/rules/schedule.ts'
import { useQuery } from '../../api/query.ts'
import { Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { loopsText as text } from './text.ts'

/** The schedule of a trigger. */
export interface WrittenSchedule {
  readonly cron?: string | undefined
  readonly interval?: string | undefined
  readonly timezone?: string | undefined
}

/**
 * Shows the next times at which the schedule fires, or nothing while the schedule is invalid.
 * `first` is the next of these times if it is already known.
 */
export function NextTimes({
  project,
  schedule: { cron, interval, timezone },
  first,
}: {
  readonly project: string
  readonly schedule: WrittenSchedule
  readonly first?: string | undefined
}) {
  const schedule = {
    ...(cron && { cron }),
    ...(interval && { interval }),
    ...(timezone && { timezone }),
  }
  const isValid = scheduleFault(schedule) === undefined
  const { state, reload } = useQuery(
    'schedule.next',
    isValid
      ? { project, ...schedule, count: first === undefined ? 5 : 4, ...(first && { since: first }) }
      : undefined,
  )
  const { data, error, loading } = state.value
  if (!isValid) return null
  if (error) return <Failure error={error} retry={reload} />
  if (!data) return loading ? <Skeleton lines={1} /> : null
  const times = first === undefined ? data.times : [first, ...data.times]
  return (
    <div class="stack close">
      <div class="small soft">
        {text.nextTimes} · {text.yourTime}
      </div>
      {times.length === 0 ? (
        <p>{text.noTimes}</p>
      ) : (
        <ul class="row" aria-label={text.nextTimes}>
          {times.map((at, index) => (
            <li key={at} class="badge">
              <Time at={at} />
              {index === 0 && (
                <span class="soft">
                  (<Time at={at} relative />)
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
