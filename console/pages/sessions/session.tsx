/** The page of a session: the conversation, its details, and its actions. */
import { useEffect, useState } from 'preact/hooks'
import { channelOfKey } from '../../../protocol/channels/exchange.ts'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Dialog, DialogActions, Menu, type MenuItem } from '../../design/overlay.tsx'
import { Badge, Failure, Notice, Skeleton } from '../../design/states.tsx'
import { useChanged } from '../../form/unsaved.ts'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { Conversation } from './conversation/conversation.tsx'
import { useSession } from './conversation/followed.ts'
import { nameOf } from './sessions.tsx'
import { Details } from './side/details.tsx'
import { sessionsText as text } from './text.ts'

type SessionDetail = CallReply<'session.get'>
type Asked = 'rename' | 'delete' | undefined

/** Media query for windows in which the details are initially shown beside the conversation. */
const WIDE = '(min-width: 80rem)'

/** Returns whether the window is wide, updated when its size changes. */
function useWide(): boolean {
  const [wide, setWide] = useState(() => matchMedia(WIDE).matches)
  useEffect(() => {
    const query = matchMedia(WIDE)
    const changed = (): void => setWide(query.matches)
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [])
  return wide
}

export default function SessionPage({ params }: PageProps) {
  const { project = '', id = '' } = params
  const base = `/p/${encodeURIComponent(project)}`
  const followed = useSession(project, id)
  const of = { project, session_id: id }
  const { state, reload } = useQuery(
    'session.get',
    { ...of, include: ['environment', 'credit_cost_milli'] },
    { kinds: ['session'], id },
  )
  const { data: session, error } = state.value
  const agent = useQuery('agent.get', session && { project, id: session.agent_id }, {
    kinds: ['agent'],
  }).state.value.data
  const [asked, setAsked] = useState<Asked>()
  const wide = useWide()
  const shown = currentUrl.value.query.get('details')
  const details = shown === null ? wide : shown === '1'
  const toggle = (): void => setQuery({ details: details ? '0' : '1' })
  const act = may('agent.invoke') && session !== undefined
  useCommands(
    [
      { id: 'details', label: text.details, keys: 'd', run: toggle },
      ...(act
        ? [{ id: 'rename', label: text.renameSession, keys: 'r', run: () => setAsked('rename') }]
        : []),
    ],
    [details, act],
  )
  const crumbs = [{ label: text.title, href: `${base}/sessions` }]
  if (!session)
    return (
      <Page title={text.session} crumbs={crumbs}>
        {error ? <Failure error={error} retry={reload} /> : <Skeleton lines={8} />}
      </Page>
    )
  const agentName = agent?.name ?? session.agent_id
  const archived = session.status !== 'active'
  const { compaction } = session
  return (
    <Page
      full
      title={nameOf(session)}
      crumbs={crumbs}
      actions={
        <>
          {archived && <Badge>{text.archived}</Badge>}
          <Button icon="info" shortcut="d" onClick={toggle}>
            {details ? text.hideDetails : text.details}
          </Button>
          <CopyCall
            name="session.start_turn"
            input={{ ...of, content: [{ type: 'text', text: 'Hello' }] }}
          />
          <Menu
            label={text.session}
            items={actionsOf(project, session, () => reload(), setAsked)}
          />
        </>
      }
    >
      <div class={details ? 'session-body with-details' : 'session-body'}>
        <div class="session-main">
          {error && <Failure error={error} retry={reload} />}
          {compaction.in_progress && (
            <Notice>{text.compacting(compaction.message_count ?? 0)}</Notice>
          )}
          <Conversation
            project={project}
            session_id={id}
            agent={agentName}
            followed={followed}
            channel={channelOfKey(session.session_key)}
            archived={archived}
          />
        </div>
        {details && (
          <aside class="session-side card" aria-label={text.details}>
            <div class="body">
              <Details project={project} session={session} agent={agentName} />
            </div>
          </aside>
        )}
      </div>
      {asked === 'rename' && (
        <Rename project={project} session={session} onClose={() => setAsked(undefined)} />
      )}
      {asked === 'delete' && (
        <Confirm
          title={text.deleteQuestion}
          action={text.delete}
          danger
          onConfirm={async () => {
            await call('session.delete', of)
            showDone(text.wasDeleted)
            go(`${base}/sessions`)
          }}
          onClose={() => setAsked(undefined)}
        >
          <p>{text.deleteHint}</p>
        </Confirm>
      )}
    </Page>
  )
}

function actionsOf(
  project: string,
  { id, status }: SessionDetail,
  reload: () => void,
  ask: (asked: Asked) => void,
): MenuItem[] {
  const of = { project, session_id: id }
  const archived = status === 'archived'
  const act = may('agent.invoke')
  return [
    ...(act
      ? [
          { label: text.rename, icon: 'edit' as const, onSelect: () => ask('rename') },
          {
            label: text.compact,
            onSelect: async () => {
              await call('session.compact', of)
              showDone(text.compacted)
              reload()
            },
          },
          {
            label: archived ? text.restore : text.archive,
            onSelect: async () => {
              await call('session.update', { ...of, status: archived ? 'active' : 'archived' })
              showDone(archived ? text.wasRestored : text.wasArchived)
              reload()
            },
          },
        ]
      : []),
    ...(may('project.edit')
      ? [
          {
            label: text.delete,
            icon: 'trash' as const,
            danger: true,
            onSelect: () => ask('delete'),
          },
        ]
      : []),
  ]
}

function Rename({
  project,
  session,
  onClose,
}: {
  readonly project: string
  readonly session: SessionDetail
  readonly onClose: () => void
}) {
  const [title, setTitle] = useState(session.title)
  const { isChanged } = useChanged([title])
  return (
    <Dialog title={text.renameSession} onClose={onClose}>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        <TextField label={text.titleField} value={title} maxLength={512} onValue={setTitle} />
        <DialogActions
          onClose={onClose}
          action={text.save}
          submit
          disabled={!isChanged}
          onClick={async () => {
            const of = { project, session_id: session.id }
            await call('session.update', { ...of, title: title.trim() })
            onClose()
          }}
        />
      </form>
    </Dialog>
  )
}
