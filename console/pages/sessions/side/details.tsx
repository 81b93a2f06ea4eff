/** The details of a session: its record, its usage, its tools and its definition. */
import { useState } from 'preact/hooks'
import { channelOfKey } from '../../../../protocol/channels/exchange.ts'
import type { CallReply } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { CopyButton } from '../../../design/copy.tsx'
import { Badge, Show } from '../../../design/states.tsx'
import { Time } from '../../../design/time.tsx'
import { Tree } from '../../../design/tree.tsx'
import { Who } from '../../../people/who.tsx'
import { formatCost, formatNumber } from '../../../text/format.ts'
import { sessionsText as text } from '../text.ts'
import { WorkspaceFilesPanel } from './workspace.tsx'

type SessionDetail = CallReply<'session.get'>

function compactionText({ compaction_policy, compaction }: SessionDetail): string {
  const { strategy } = compaction_policy ?? {}
  if (strategy === 'manual') return text.compactionManual
  if (strategy === 'disabled' || strategy === 'none') return text.compactionOff
  return text.compactionAt(compaction.threshold_tokens ?? 0)
}

/** Shows the details of a session. `agent` is the name of its agent. */
export function Details({
  project,
  session,
  agent,
}: {
  readonly project: string
  readonly session: SessionDetail
  readonly agent: string
}) {
  const base = `/p/${encodeURIComponent(project)}`
  const channel = channelOfKey(session.session_key)
  const { latest_compaction, environment } = session
  return (
    <div class="stack">
      <dl class="facts">
        <dt>{text.id}</dt>
        <dd class="session-id">
          <code>{session.id}</code>
          <CopyButton value={session.id} />
        </dd>
        <dt>{text.agent}</dt>
        <dd>
          <a class="user-text" href={`${base}/agents/${session.agent_id}`}>
            {agent}
          </a>
        </dd>
        <dt>{text.model}</dt>
        <dd class="user-text">{session.model || text.modelDefault}</dd>
        {session.thinking_effort !== undefined && (
          <>
            <dt>{text.effort}</dt>
            <dd>{session.thinking_effort}</dd>
          </>
        )}
        <dt>{text.key}</dt>
        <dd class="user-text mono">{session.session_key}</dd>
        {channel !== undefined && (
          <>
            <dt>{text.channel}</dt>
            <dd>
              <a href={`${base}/channels/${encodeURIComponent(channel)}`}>{channel}</a>
            </dd>
          </>
        )}
        <dt>{text.visibility}</dt>
        <dd>
          {channel !== undefined
            ? text.visibleChannel
            : session.visibility === 'private'
              ? text.visiblePrivate
              : text.visibleProject}
        </dd>
        <dt>{text.origin}</dt>
        <dd>{session.origin}</dd>
        <dt>{text.created}</dt>
        <dd>
          <Time at={session.created_at} />
        </dd>
        {session.created_by !== undefined && (
          <>
            <dt>{text.createdBy}</dt>
            <dd>
              <Who project={project} id={session.created_by} />
            </dd>
          </>
        )}
        {session.expires_at && (
          <>
            <dt>{text.expires}</dt>
            <dd>
              <Time at={session.expires_at} relative />
            </dd>
          </>
        )}
        {environment && (
          <>
            <dt>{text.environment}</dt>
            <dd class="row">
              <a href={`${base}/environments/${environment.id}`}>{environment.id}</a>
              <Badge>{environment.status}</Badge>
            </dd>
          </>
        )}
      </dl>
      <section class="stack close">
        <h2>{text.total}</h2>
        <dl class="facts">
          <dt>{text.messages}</dt>
          <dd>{formatNumber(session.message_count)}</dd>
          <dt>{text.input}</dt>
          <dd>{formatNumber(session.token_input_total)}</dd>
          <dt>{text.output}</dt>
          <dd>{formatNumber(session.token_output_total)}</dd>
          <dt>{text.cacheRead}</dt>
          <dd>{formatNumber(session.cache_read_input_total)}</dd>
          <dt>{text.cacheWritten}</dt>
          <dd>{formatNumber(session.cache_creation_input_total)}</dd>
          <dt>{text.cost}</dt>
          <dd>
            {session.credit_cost_milli === undefined ? (
              <span class="soft">{text.costUnknown}</span>
            ) : (
              formatCost(session.credit_cost_milli)
            )}
          </dd>
          <dt>{text.compaction}</dt>
          <dd>
            {compactionText(session)}
            {latest_compaction && (
              <div class="soft small">
                {text.compactionLast(latest_compaction.covers_through_sequence)}
              </div>
            )}
          </dd>
        </dl>
      </section>
      {environment && environment.status !== 'destroyed' && (
        <WorkspaceFilesPanel
          key={environment.id}
          project={project}
          environment_id={environment.id}
          changed={session.message_count}
        />
      )}
      <Opened label={text.tools}>{() => <Tools project={project} id={session.agent_id} />}</Opened>
      {session.config && (
        <Opened label={text.definition}>{() => <Tree value={session.config} open={2} />}</Opened>
      )}
      {session.metadata && (
        <Opened label={text.metadata}>{() => <Tree value={session.metadata} open={2} />}</Opened>
      )}
      <Opened label={text.record}>{() => <Tree value={session} />}</Opened>
    </div>
  )
}

/** A collapsible part whose content is rendered only while it is open. */
function Opened({
  label,
  children,
}: {
  readonly label: string
  readonly children: () => preact.ComponentChildren
}) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="folded" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && <div class="folded-body">{children()}</div>}
    </details>
  )
}

/** The tools that an agent has now, with the warnings about its toolkits. */
export function Tools({ project, id }: { readonly project: string; readonly id: string }) {
  const { state, reload } = useQuery(
    'agent.tools',
    { project, id },
    { kinds: ['agent', 'toolkit', 'skill', 'action'] },
  )
  return (
    <Show of={state.value} retry={reload} lines={3}>
      {({ tools, warnings }) => (
        <div class="stack close">
          {tools.length === 0 && <p class="soft">{text.noTools}</p>}
          {warnings.length > 0 && (
            <ul class="stack close" aria-label={text.warnings}>
              {warnings.map(({ code, message }) => (
                <li class="notice warn small user-text" key={`${code} ${message}`}>
                  {message}
                </li>
              ))}
            </ul>
          )}
          {tools.length > 0 && (
            <ul class="talk-tools" aria-label={text.toolCount(tools.length)}>
              {tools.map(({ name, description }) => (
                <li key={name}>
                  <code class="user-text">{name}</code>
                  {description && <div class="soft small user-text">{description}</div>}
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </Show>
  )
}
