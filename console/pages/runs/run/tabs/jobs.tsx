/** The jobs of a run and the lines that workers printed for them. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Job } from '../../../../../protocol/jobs/rows.ts'
import { useList } from '../../../../api/query.ts'
import { Empty, Failure, Skeleton } from '../../../../design/states.tsx'
import { Duration, Time } from '../../../../design/time.tsx'
import { VirtualList } from '../../../../design/virtual/list.tsx'
import { currentUrl } from '../../../../router/router.ts'
import { StatusBadge } from '../../status.tsx'
import type { LiveRun } from '../data/live-run.ts'
import { runText as text } from '../text.ts'
import { Logs } from './logs.tsx'
import { StepFilter } from './step-filter.tsx'

/** Delay between an event and the reload of the jobs. */
const RELOAD_MS = 700

/** Shows jobs and logs. `only` in the URL is the key of the step whose jobs are shown. */
export function Jobs({
  project,
  id,
  run,
  ended,
}: {
  readonly project: string
  readonly id: string
  readonly run: LiveRun
  readonly ended: boolean
}) {
  const list = useList('run.jobs', { project, id, limit: 200 }, { kinds: ['worker'] })
  const { items, error, loading } = list.state.value
  const only = currentUrl.value.query.get('only') ?? ''
  // Jobs change with the events of actions, so the list is reloaded after such an event.
  const actions = run.fold.events.findLast(({ event_type }) => event_type.startsWith('action.'))
  const newest = run.version.value > 0 ? actions?.sequence : undefined
  useEffect(() => {
    if (newest === undefined) return undefined
    const timer = setTimeout(list.reload, RELOAD_MS)
    return () => clearTimeout(timer)
  }, [newest, ended])
  const shown = useMemo(
    () => (only === '' ? items : items.filter(({ step_key }) => step_key === only)),
    [items, only],
  )
  return (
    <div class="stack">
      <section class="stack close" aria-label={text.jobsLabel}>
        {only !== '' && (
          <div>
            <StepFilter step={only} />
          </div>
        )}
        {error && <Failure error={error} retry={list.reload} />}
        {shown.length === 0 ? (
          loading ? (
            <Skeleton />
          ) : (
            <Empty icon="workers" title={text.noJobs}>
              {text.noJobsHint}
            </Empty>
          )
        ) : (
          <VirtualList
            items={shown}
            line={38}
            columns="minmax(9rem, 1.5fr) 8rem minmax(8rem, 1fr) minmax(7rem, 1fr) minmax(8rem, 1fr) 6rem 6rem"
            height={`min(${shown.length * 38 + 44}px, 40vh)`}
            label={text.jobsLabel}
            head={[
              text.action,
              text.status,
              text.step,
              text.queue,
              text.worker,
              text.waited,
              text.worked,
            ]}
            keyOf={({ id: job }) => job}
            onEnd={list.more}
            render={(job) => ({ cells: cellsOf(job) })}
          />
        )}
      </section>
      <Logs project={project} id={id} only={only} ended={ended} run={run} />
    </div>
  )
}

const cellsOf = (job: Job) => [
  <span class="user-text" title={job.error_message}>
    {job.action_name ?? job.model ?? job.id}
    {job.claim_attempt > 1 && <span class="soft"> · {text.attemptLabel(job.claim_attempt)}</span>}
  </span>,
  <StatusBadge status={job.status} />,
  <span class="user-text">{job.step_key}</span>,
  <span class="user-text">{job.queue}</span>,
  job.worker_instance_id === undefined ? (
    <span class="soft">{job.waiting_on && text.waitsForWorker}</span>
  ) : (
    <span class="user-text">{job.worker_instance_id}</span>
  ),
  <Duration from={job.created_at} to={job.claimed_at ?? job.completed_at} />,
  job.claimed_at === undefined ? (
    <Time at={job.created_at} relative />
  ) : (
    <Duration from={job.claimed_at} to={job.completed_at} />
  ),
]
