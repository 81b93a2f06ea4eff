/** The page of an agent: settings with a try-out, tools and skills, memory, messaging, sessions. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useList, useQuery } from '../../api/query.ts'
import { CopyCall } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Empty, Failure, Skeleton } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { Time } from '../../design/time.tsx'
import { go } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { Bindings } from './bindings.tsx'
import { AgentCapabilities } from './capabilities/assignments.tsx'
import { Memory } from './memory.tsx'
import { Settings } from './settings.tsx'
import { agentsText as text } from './text.ts'
import { TryOut } from './try-out.tsx'

export default function AgentPage({ params }: PageProps) {
  const { project = '', id = '' } = params
  const base = `/p/${encodeURIComponent(project)}`
  const { state, reload } = useQuery('agent.get', { project, id }, { kinds: ['agent'], id })
  const [dirty, setDirty] = useState(false)
  const [deleting, setDeleting] = useState(false)
  const { data: agent, error } = state.value
  const crumbs = [{ label: text.title, href: `${base}/agents` }]
  if (!agent)
    return (
      <Page title={text.agent} crumbs={crumbs}>
        {error ? <Failure error={error} retry={reload} /> : <Skeleton lines={8} />}
      </Page>
    )
  const inactive = agent.status === 'inactive'
  return (
    <Page
      title={agent.name}
      crumbs={crumbs}
      actions={
        <>
          {inactive && <Badge>{text.inactive}</Badge>}
          <CopyCall
            name="agent.invoke"
            input={{
              project,
              agent_ref: { id },
              input: { content: [{ type: 'text', text: 'Hello' }] },
            }}
          />
          {may('project.edit') && (
            <Menu
              label={text.agent}
              items={[
                {
                  label: inactive ? text.activate : text.deactivate,
                  onSelect: async () => {
                    const status = inactive ? 'active' : 'inactive'
                    await call('agent.update', { project, id, status })
                    reload()
                  },
                },
                {
                  label: text.delete,
                  icon: 'trash',
                  danger: true,
                  onSelect: () => setDeleting(true),
                },
              ]}
            />
          )}
        </>
      }
    >
      {error && <Failure error={error} retry={reload} />}
      <Tabs
        label={text.tabs}
        tabs={[
          {
            id: 'settings',
            label: text.settings,
            content: () => (
              <div class="agent-settings">
                <Settings project={project} agent={agent} onSaved={reload} onDirty={setDirty} />
                <TryOut project={project} agent={agent} dirty={dirty} />
              </div>
            ),
          },
          {
            id: 'tools',
            label: text.tools,
            content: () => <AgentCapabilities project={project} id={id} />,
          },
          {
            id: 'memory',
            label: text.memory,
            content: () => <Memory project={project} id={id} />,
          },
          {
            id: 'messaging',
            label: text.messaging,
            content: () => <Bindings project={project} id={id} />,
          },
          {
            id: 'sessions',
            label: text.sessions,
            content: () => <Sessions project={project} id={id} />,
          },
        ]}
      />
      {deleting && (
        <Confirm
          title={text.deleteQuestion(agent.name)}
          action={text.delete}
          danger
          onConfirm={async () => {
            await call('agent.delete', { project, id })
            showDone(text.deleted)
            go(`${base}/agents`)
          }}
          onClose={() => setDeleting(false)}
        >
          <p>{text.deleteHint}</p>
        </Confirm>
      )}
    </Page>
  )
}

function Sessions({ project, id }: { readonly project: string; readonly id: string }) {
  const base = `/p/${encodeURIComponent(project)}/sessions`
  const { state, reload } = useList(
    'session.list',
    { project, agent_id: id, limit: 20 },
    { kinds: ['session'] },
  )
  const { items, loading, error } = state.value
  if (error) return <Failure error={error} retry={reload} />
  if (items.length === 0) return loading ? <Skeleton /> : <Empty title={text.noSessions} />
  return (
    <div class="stack">
      <ul class="card recent">
        {items.map(({ id: session, title, session_key, last_message_at, created_at }) => (
          <li key={session}>
            <a class="grow clip user-text" href={`${base}/${session}`}>
              {title || session_key}
            </a>
            <span class="soft small">
              <Time at={last_message_at ?? created_at} relative />
            </span>
          </li>
        ))}
      </ul>
      <a href={`${base}?agent=${encodeURIComponent(id)}`}>{text.allSessions}</a>
    </div>
  )
}
