/** A session with an agent, shown beside its settings. The session id is in the URL. */
import { call } from '../../api/client.ts'
import { Button, LinkButton } from '../../design/button.tsx'
import { Notice } from '../../design/states.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { Conversation } from '../sessions/conversation/conversation.tsx'
import { useSession } from '../sessions/conversation/followed.ts'
import type { Agent } from './settings.tsx'
import { agentsText as text } from './text.ts'

/** Starts and shows the session. `dirty` means that the settings have unsaved changes. */
export function TryOut({
  project,
  agent,
  dirty,
}: {
  readonly project: string
  readonly agent: Agent
  readonly dirty: boolean
}) {
  const session = currentUrl.value.query.get('try') ?? ''
  const start = async (): Promise<void> => {
    const { id } = await call('session.create', {
      project,
      agent_id: agent.id,
      mode: 'new',
      title: `${text.tryTitle}: ${agent.name}`,
      visibility: 'private',
    })
    setQuery({ try: id })
  }
  return (
    <section class="card try-out" aria-label={text.tryOut}>
      <header>
        <h2>{text.tryOut}</h2>
        {session !== '' && (
          <div class="row">
            <Button onClick={start}>{text.tryAgain}</Button>
            <LinkButton
              icon="external"
              href={`/p/${encodeURIComponent(project)}/sessions/${encodeURIComponent(session)}`}
            >
              {text.tryOpen}
            </LinkButton>
          </div>
        )}
      </header>
      <div class="body">
        {dirty && <Notice tone="warn">{text.tryUnsaved}</Notice>}
        {session !== '' ? (
          <Talk key={session} project={project} session_id={session} agent={agent.name} />
        ) : agent.status !== 'active' ? (
          <p class="soft">{text.tryInactive}</p>
        ) : (
          <div class="empty">
            <p>{text.tryHint}</p>
            {may('agent.invoke') && <Button onClick={start}>{text.tryStart}</Button>}
          </div>
        )}
      </div>
    </section>
  )
}

function Talk({
  project,
  session_id,
  agent,
}: {
  readonly project: string
  readonly session_id: string
  readonly agent: string
}) {
  const followed = useSession(project, session_id)
  return (
    <Conversation project={project} session_id={session_id} agent={agent} followed={followed} />
  )
}
