/** The facts of a run, and links to related records. */

import type { ComponentChildren } from 'preact'
import { isolate } from '../../../../../client/isolate.ts'
import { useList } from '../../../../api/query.ts'
import { CopyButton } from '../../../../design/copy.tsx'
import { Time } from '../../../../design/time.tsx'
import { Tree } from '../../../../design/tree.tsx'
import { formatBytes, formatNumber } from '../../../../text/format.ts'
import { StatusBadge } from '../../status.tsx'
import { runsText } from '../../text.ts'
import type { LiveRun, RunDetail } from '../data/live-run.ts'
import { runText as text } from '../text.ts'

const Id = ({ id, href }: { readonly id: string; readonly href?: string }) => (
  <span class="row">
    {href === undefined ? (
      <span class="mono user-text">{id}</span>
    ) : (
      <a class="mono user-text" href={href}>
        {id}
      </a>
    )}
    <CopyButton value={id} label={text.copyId} />
  </span>
)

/** Shows ids, times, links and metadata of a run. */
export function Details({
  project,
  detail,
  run,
  workflow,
}: {
  readonly project: string
  readonly detail: RunDetail
  readonly run: LiveRun
  /** Name of the workflow, if it is known. */
  readonly workflow: string | undefined
}) {
  run.version.value
  const at = `/p/${encodeURIComponent(project)}`
  const { id } = detail
  const facts: [string, ComponentChildren][] = [[text.id, <Id id={id} />]]
  const add = (name: string, value: unknown, shown?: ComponentChildren): void => {
    if (value !== undefined && value !== '') facts.push([name, shown ?? String(value)])
  }
  if ('loop_id' in detail) {
    const { loop_id, loop_name, loop_version, source, stop_reason } = detail
    add(text.loop, loop_id, <a href={`${at}/loops/${loop_id}`}>{loop_name ?? loop_id}</a>)
    add(text.definition, loop_version, runsText.version(loop_version))
    add(
      text.source,
      source?.type,
      [source?.type, source?.label && isolate(source.label)].filter(Boolean).join(' · '),
    )
    add(text.turns, detail.agent_turns_used)
    add(text.wallClock, detail.wall_clock_deadline_at, time(detail.wall_clock_deadline_at))
    add(text.status, stop_reason, stop_reason?.replaceAll('_', ' '))
  } else {
    const { definition_id, definition_version, external_id, queue, workflow_type } = detail
    add(
      text.definition,
      definition_id,
      <span class="row">
        <a class="user-text" href={`${at}/workflows/${definition_id}`} title={definition_id}>
          {workflow ?? definition_id}
        </a>
        <span class="soft">{runsText.version(definition_version)}</span>
        <CopyButton value={definition_id} label={text.copyId} />
      </span>,
    )
    add(text.kind, workflow_type)
    add(text.queue, queue)
    add(text.externalId, external_id, external_id && <Id id={external_id} />)
    add(text.initiatedBy, detail.initiated_by)
  }
  const { parent_run_id: parent } = detail
  add(
    text.parent,
    parent,
    parent && <Id id={parent} href={`${at}/runs/${encodeURIComponent(parent)}`} />,
  )
  add(text.created, detail.created_at, time(detail.created_at))
  add(text.started, detail.started_at, time(detail.started_at))
  add(text.ended, detail.completed_at, time(detail.completed_at))
  add(text.updated, detail.updated_at, time(detail.updated_at))
  const steps = [...run.fold.steps.values()]
  const sessions = unique(steps.map(({ sessionId }) => sessionId))
  const questions = unique(steps.map(({ interactionId }) => interactionId))
  const metadata = 'loop_id' in detail ? detail.meta : undefined
  return (
    <div class="columns">
      <dl class="facts">
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd class="user-text">{value}</dd>
          </>
        ))}
      </dl>
      <div class="stack">
        <Links title={text.questions} ids={questions} href={(one) => `${at}/inbox?id=${one}`} />
        <Links title={text.sessions} ids={sessions} href={(one) => `${at}/sessions/${one}`} />
        <Children project={project} id={id} />
        <Artifacts project={project} id={id} />
        {metadata && (
          <section class="stack close">
            <h2>{text.metadata}</h2>
            <Tree value={metadata} open={2} />
          </section>
        )}
      </div>
    </div>
  )
}

const time = (at: string | undefined) => (at === undefined ? undefined : <Time at={at} />)
const unique = (ids: readonly (string | undefined)[]): string[] => [
  ...new Set(ids.filter((id): id is string => id !== undefined)),
]

const Links = ({
  title,
  ids,
  href,
}: {
  readonly title: string
  readonly ids: readonly string[]
  readonly href: (id: string) => string
}) =>
  ids.length === 0 ? null : (
    <section class="stack close">
      <h2>{title}</h2>
      <ul>
        {ids.slice(0, 100).map((id) => (
          <li key={id}>
            <Id id={id} href={href(encodeURIComponent(id))} />
          </li>
        ))}
      </ul>
    </section>
  )

function Children({ project, id }: { readonly project: string; readonly id: string }) {
  const { items, more } = useList('run.list', { project, parent_run_id: id, limit: 20 }).state.value
  if (items.length === 0) return null
  const at = `/p/${encodeURIComponent(project)}/runs`
  return (
    <section class="stack close">
      <h2>{text.children}</h2>
      <ul>
        {items.map((child) => (
          <li key={child.id} class="row">
            <StatusBadge status={child.status} />
            <Id id={child.id} href={`${at}/${child.id}`} />
          </li>
        ))}
      </ul>
      {more && <a href={`${at}?parent_run_id=${id}`}>{text.allChildren}</a>}
    </section>
  )
}

function Artifacts({ project, id }: { readonly project: string; readonly id: string }) {
  const { items } = useList(
    'artifact.list',
    { project, run_id: id, limit: 50 },
    { kinds: ['artifact'] },
  ).state.value
  if (items.length === 0) return null
  const at = `/p/${encodeURIComponent(project)}/artifacts`
  return (
    <section class="stack close">
      <h2>{text.artifacts}</h2>
      <ul>
        {items.map(({ id: artifact, name, size_bytes }) => (
          <li key={artifact} class="row">
            <a class="user-text" href={`${at}/${artifact}`}>
              {name}
            </a>
            <span class="soft small" title={formatNumber(size_bytes)}>
              {formatBytes(size_bytes)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
