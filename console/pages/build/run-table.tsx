/** A table of the runs of a workflow, a loop or an event, updated live. */
import type { CallInput } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { TableFrame } from '../../design/data-table.tsx'
import { MoreButton } from '../../design/listed.tsx'
import { Empty, Failure, Skeleton } from '../../design/states.tsx'
import { Duration, Time } from '../../design/time.tsx'
import { useNames } from '../runs/list/names.ts'
import { StatusBadge } from '../runs/status.tsx'
import { buildText as text } from './text.ts'

const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

/** Shows the runs that a filter selects, newest first. */
export function RunTable({
  project,
  filter,
  hint = text.noRunsHint,
}: {
  readonly project: string
  readonly filter: Omit<CallInput<'run.list'>, 'project' | 'limit' | 'cursor' | 'include'>
  readonly hint?: string
}) {
  const list = useList('run.list', { project, ...filter, limit: 25 }, { kinds: ['run'] })
  const { items, loading, error } = list.state.value
  const names = useNames(project)
  const base = `/p/${encodeURIComponent(project)}/runs`
  const query = new URLSearchParams(filter as Record<string, string>)
  if (error && items.length === 0) return <Failure error={error} retry={list.reload} />
  if (items.length === 0)
    return loading ? (
      <Skeleton />
    ) : (
      <Empty icon="runs" title={text.noRuns}>
        <p>{hint}</p>
      </Empty>
    )
  return (
    <div class="stack close">
      <TableFrame
        label={text.runs}
        headings={[text.status, text.run, text.source, text.started, text.duration]}
      >
        <tbody>
          {items.map((run) => (
            <tr key={run.id}>
              <td>
                <StatusBadge status={run.status} />
              </td>
              <td>
                <a class="user-text" href={`${base}/${run.id}`}>
                  {run.name ?? run.id}
                </a>
                {run.error_message && (
                  <div class="small soft user-text">{run.error_message.slice(0, 200)}</div>
                )}
              </td>
              <td class="user-text">
                {'loop_id' in run
                  ? (run.source?.label ?? run.source?.type ?? '–')
                  : (names.get(run.initiated_by ?? '') ?? run.initiated_by ?? '–')}
              </td>
              <td>
                <Time at={run.started_at ?? run.created_at} relative />
              </td>
              <td>
                <Duration
                  from={run.started_at ?? run.created_at}
                  to={run.completed_at ?? (ended.has(run.status) ? run.updated_at : undefined)}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
      <div class="row apart">
        <span>
          <MoreButton of={list} />
        </span>
        <a href={`${base}?${query}`}>{text.allRuns}</a>
      </div>
    </div>
  )
}
