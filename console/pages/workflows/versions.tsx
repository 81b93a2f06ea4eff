/** The versions of a workflow: their differences, and the restoration of an earlier one. */
import { useState } from 'preact/hooks'
import type { Workflow } from '../../../protocol/workflows/rows.ts'
import { call } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { TableFrame } from '../../design/data-table.tsx'
import { SelectField } from '../../design/field.tsx'
import { More } from '../../design/listed.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { Badge, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { Differences } from '../../editor/differences.tsx'
import { Who } from '../../people/who.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { workflowsText as text } from './text.ts'

/** Shows the versions, newest first. The URL contains the numbers of the compared versions. */
export function Versions({
  project,
  workflow,
}: {
  readonly project: string
  readonly workflow: Workflow
}) {
  const { id, latest_version } = workflow
  const list = useList(
    'workflow.versions',
    { project, id, include_spec: true, limit: 20 },
    { kinds: ['workflow'], id },
  )
  const { items, error } = list.state.value
  const [restoring, setRestoring] = useState<number>()
  const { query } = currentUrl.value
  const find = (wanted: number) => items.find(({ version }) => version === wanted)
  const after = find(Number(query.get('to') ?? latest_version))
  const before = find(Number(query.get('from') ?? (after?.version ?? 1) - 1))
  const choices = items.map(({ version }) => ({ value: String(version), label: String(version) }))
  const specOf = (version: number): string => JSON.stringify(find(version)?.spec, undefined, 2)
  if (error && items.length === 0) return <Failure error={error} retry={list.reload} />
  if (items.length === 0) return <Skeleton />
  return (
    <div class="stack">
      <TableFrame
        label={text.versions}
        headings={[text.version, text.at, text.by, { name: text.compare, unseen: true }]}
      >
        <tbody>
          {items.map(({ version, created_at, created_by }) => (
            <tr key={version}>
              <td>
                {version} {version === latest_version && <Badge>{text.latest}</Badge>}
              </td>
              <td>
                <Time at={created_at} relative />
              </td>
              <td>{created_by ? <Who project={project} id={created_by} /> : '–'}</td>
              <td>
                <div class="row">
                  {version > 1 && (
                    <Button
                      kind="quiet"
                      onClick={() => setQuery({ from: String(version - 1), to: String(version) })}
                    >
                      {text.compare}
                    </Button>
                  )}
                  {version < latest_version && may('project.edit') && (
                    <Button kind="quiet" onClick={() => setRestoring(version)}>
                      {text.restore(version)}
                    </Button>
                  )}
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </TableFrame>
      <More of={list} />
      {latest_version === 1 && <p class="soft">{text.oneVersion}</p>}
      {before && after && (
        <section class="stack" aria-label={text.compare}>
          <div class="row">
            <SelectField
              label={text.from}
              value={String(before.version)}
              choices={choices}
              onValue={(from) => setQuery({ from, to: String(after.version) })}
            />
            <SelectField
              label={text.to}
              value={String(after.version)}
              choices={choices}
              onValue={(to) => setQuery({ to, from: String(before.version) })}
            />
          </div>
          <Differences
            before={specOf(before.version)}
            after={specOf(after.version)}
            language="json"
          />
        </section>
      )}
      {restoring !== undefined && (
        <Confirm
          title={text.restoreTitle(restoring)}
          action={text.restoreAction}
          onClose={() => setRestoring(undefined)}
          onConfirm={async () => {
            const { latest_version: made } = await call('workflow.update', {
              project,
              id,
              spec: find(restoring)?.spec as never,
              expected_version: latest_version,
            })
            showDone(text.restored(made))
          }}
        >
          <p>{text.restoreHint(latest_version + 1)}</p>
        </Confirm>
      )}
    </div>
  )
}
