/** The tab with the calls of an action that have ended. */
import { useList } from '../../api/query.ts'
import { TableFrame } from '../../design/data-table.tsx'
import { More } from '../../design/listed.tsx'
import { Badge, Empty, Failure, Skeleton, type Tone } from '../../design/states.tsx'
import { Duration, Time } from '../../design/time.tsx'
import { buildText } from '../build/text.ts'
import { useNames } from '../runs/list/names.ts'
import { actionsText as text } from './text.ts'

const tones: Readonly<Record<string, Tone>> = { success: 'good', failed: 'bad' }

/** Shows the calls, newest first. */
export function Calls({ project, name }: { readonly project: string; readonly name: string }) {
  const list = useList(
    'invocation.list',
    { project, action_name: name, limit: 25 },
    { kinds: ['run'] },
  )
  const { items, loading, error } = list.state.value
  const names = useNames(project)
  if (error && items.length === 0) return <Failure error={error} retry={list.reload} />
  if (items.length === 0)
    return loading ? (
      <Skeleton />
    ) : (
      <Empty icon="start" title={text.noCalls}>
        <p>{text.noCallsHint}</p>
      </Empty>
    )
  return (
    <div class="stack close">
      <TableFrame
        label={text.calls}
        headings={[text.status, text.started, buildText.duration, text.caller, text.run]}
      >
        <tbody>
          {items.map((one) => (
            <tr key={one.id}>
              <td>
                <Badge tone={tones[one.status] ?? 'neutral'}>{one.status}</Badge> {one.http_status}
                {one.error_message && (
                  <div class="small soft user-text">{one.error_message.slice(0, 200)}</div>
                )}
              </td>
              <td>
                <Time at={one.started_at} relative />
              </td>
              <td>
                <Duration from={one.started_at} to={one.finished_at} />
              </td>
              <td class="user-text">
                {names.get(one.actor_principal_id ?? '') ?? one.actor_principal_id ?? one.source}
              </td>
              <td>
                {one.run_id && (
                  <a
                    class="mono user-text"
                    href={`/p/${encodeURIComponent(project)}/runs/${one.run_id}`}
                  >
                    {one.run_id}
                  </a>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
      <More of={list} />
    </div>
  )
}
