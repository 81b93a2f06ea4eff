/** One channel: its header, its messages, the composer, and the panel beside them. */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Channel } from '../../../protocol/channels/schema.ts'
import { call } from '../../api/client.ts'
import { useList, useQuery } from '../../api/query.ts'
import { Button, IconButton, LinkButton } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { Icon, type IconName } from '../../design/icons.tsx'
import { showError } from '../../design/notify.ts'
import { Badge, Empty, Notice } from '../../design/states.tsx'
import { usePeople } from '../../people/people.ts'
import { currentUrl, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { nameOfChannel, useDirectName } from './channel-list.tsx'
import { Composer } from './composer.tsx'
import { Members } from './members.tsx'
import type { MessageContext } from './message.tsx'
import { Exchanges, Pins, Search, Thread } from './panel.tsx'
import { ChannelActions } from './settings.tsx'
import { channelsText as text } from './text.ts'
import { Timeline } from './timeline.tsx'
import { useMessages } from './use-messages.ts'

const PANELS: readonly { readonly id: string; readonly icon: IconName; readonly label: string }[] =
  [
    { id: 'search', icon: 'search', label: text.panelSearch },
    { id: 'pins', icon: 'pin', label: text.panelPins },
    { id: 'exchanges', icon: 'agents', label: text.panelExchanges },
    { id: 'members', icon: 'people', label: text.panelMembers },
  ]
const openPanel = (panel: string): void =>
  setQuery({ panel: currentUrl.peek().query.get('panel') === panel ? '' : panel, thread: '' })

/** Delay before a new read position is sent, so that scrolling does not send every position. */
const READ_PAUSE_MS = 400
/** Returns a function that moves the member's read marker forward, after a short delay. */
function useReading(project: string, channel: Channel, me: string) {
  const sent = useRef(channel.message_seq - (channel.unread_count ?? channel.message_seq))
  const wanted = useRef(0)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  return (seq: number): void => {
    if (channel.unread_count === undefined) return
    wanted.current = Math.max(wanted.current, seq)
    if (wanted.current <= sent.current) return
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      sent.current = wanted.current
      call('channel.mark_read', {
        project,
        id: channel.id,
        user_id: me,
        seq: wanted.current,
      }).catch(showError)
    }, READ_PAUSE_MS)
  }
}

/** Shows which agents are answering. */
function Working({ project, channel }: { readonly project: string; readonly channel: string }) {
  const { nameOf } = usePeople(project)
  const { data } = useQuery(
    'channel.exchanges',
    { project, id: channel, status: 'running', limit: 20 },
    { kinds: ['channel'], id: channel },
  ).state.value
  const agents = [...new Set(data?.items.map(({ agent_id }) => nameOf(agent_id) ?? agent_id))]
  return (
    <p class="channel-working soft small user-text" role="status">
      {agents.length > 0 && (
        <>
          <Icon name="agents" /> {text.working(agents.join(', '))}
        </>
      )}
    </p>
  )
}

function Head({
  project,
  channel,
  name,
  panel,
  administers,
  onChanged,
}: {
  readonly project: string
  readonly channel: Channel
  readonly name: string
  readonly panel: string
  readonly administers: boolean
  readonly onChanged: () => void
}) {
  return (
    <header class="channel-head">
      <div class="narrow-only">
        <LinkButton kind="quiet" href={`/p/${encodeURIComponent(project)}/channels`}>
          ← {text.back}
        </LinkButton>
      </div>
      <div class="grow">
        <h2 tabIndex={-1} class="user-text clip" title={name}>
          {name}
        </h2>
        <div class="row small soft one-line">
          {channel.archived_at && <Badge tone="warn">{text.archived}</Badge>}
          <span class="clip user-text">
            {channel.topic ?? text.memberCount(channel.member_count)}
          </span>
        </div>
      </div>
      <div class="row one-line">
        {PANELS.map(({ id, icon, label }) => (
          <IconButton
            key={id}
            icon={icon}
            label={label}
            pressed={panel === id}
            onClick={() => openPanel(id)}
          />
        ))}
        <CopyCall name="channel.messages" input={{ project, id: channel.id, limit: 100 }} />
        {administers && (
          <ChannelActions project={project} channel={channel} onChanged={onChanged} />
        )}
      </div>
    </header>
  )
}

/** Explains why the person cannot write here, and offers to join if that is possible. */
function Obstacle({
  project,
  channel,
  me,
  member,
  onJoined,
}: {
  readonly project: string
  readonly channel: Channel
  readonly me: string
  readonly member: boolean
  readonly onJoined: () => void
}) {
  if (channel.archived_at !== undefined) return <Notice tone="warn">{text.isArchived}</Notice>
  if (!may('channel.write')) return <Notice>{text.mayNotWrite}</Notice>
  if (member) return null
  return (
    <div class="row apart channel-join">
      <span class="soft">{channel.private ? text.notMember : text.joinHint}</span>
      {!channel.private && (
        <Button
          kind="primary"
          onClick={async () => {
            await call('channel.add_member', { project, id: channel.id, user_id: me })
            onJoined()
          }}
        >
          {text.join}
        </Button>
      )}
    </div>
  )
}

/** Shows a channel. The caller must set the channel's id as its `key`. */
export function ChannelView({
  project,
  channel,
  onChanged,
  nameOf,
}: {
  readonly project: string
  readonly channel: Channel
  readonly onChanged: () => void
  /** Returns the name of a channel, for search results. */
  readonly nameOf: (id: string) => string | undefined
}) {
  const { id } = channel
  const { me, nameOf: personName } = usePeople(project)
  const messages = useMessages(project, id)
  const list = useList('channel.members', { project, id, limit: 200 }, { kinds: ['channel'], id })
  const members = list.state.value.items
  const own = members.find(({ member_id }) => member_id === me)
  const direct = useDirectName(project, channel.kind === 'dm' ? id : undefined)
  const name = (channel.kind === 'dm' && direct) || nameOfChannel(channel)
  const member = channel.unread_count !== undefined || own !== undefined
  const writable = member && channel.archived_at === undefined && may('channel.write')
  const isAdmin = own?.role === 'admin' || may('project.admin')
  const administers = channel.kind !== 'dm' && may('channel.write') && isAdmin
  const active = useSignal('')
  const editing = useSignal('')
  const field = useRef<HTMLTextAreaElement>(null)
  const [readUpTo, setReadUpTo] = useState(() =>
    channel.unread_count ? channel.message_seq - channel.unread_count : undefined,
  )
  const onRead = useReading(project, channel, me)
  const around: MessageContext = {
    project,
    me,
    writable,
    active,
    editing,
    onChanged: messages.add,
    threads: true,
  }
  const people = useMemo(
    () =>
      members.map(({ member_id, kind }) => ({
        id: member_id,
        name: personName(member_id) ?? member_id,
        kind,
      })),
    [members, personName],
  )
  const { query } = currentUrl.value
  const panel = query.get('panel') ?? ''
  const thread = query.get('thread') ?? ''
  const marked = query.get('message') ?? ''
  const { loaded, gone } = messages.state.value
  useEffect(() => {
    if (marked === '' || !loaded) return
    call('channel.message', { project, id, message_id: marked })
      .then(async ({ seq, reply_to }) => {
        if (reply_to !== undefined) setQuery({ message: reply_to, thread: reply_to })
        else if (!(await messages.reach(seq))) showError(new Error(text.tooOld))
      })
      .catch(showError)
  }, [marked, loaded])
  useCommands(
    [
      ...PANELS.map((one) => ({
        id: `panel ${one.id}`,
        label: one.label,
        icon: one.icon,
        ...(one.id === 'search' && { keys: '/' }),
        run: () => openPanel(one.id),
      })),
      { id: 'compose', label: text.focusComposer, keys: 'c', run: () => field.current?.focus() },
    ],
    [],
  )
  if (gone)
    return (
      <Empty icon="channels" title={text.gone}>
        <LinkButton href={`/p/${encodeURIComponent(project)}/channels`}>{text.toList}</LinkButton>
      </Empty>
    )
  return (
    <div class={panel !== '' || thread !== '' ? 'channel with-panel' : 'channel'}>
      <section class="channel-main" aria-label={name}>
        <Head
          project={project}
          channel={channel}
          name={name}
          panel={panel}
          administers={administers}
          onChanged={onChanged}
        />
        <Timeline messages={messages} around={around} readUpTo={readUpTo} onRead={onRead} />
        <Working project={project} channel={id} />
        {writable ? (
          <Composer
            project={project}
            channel={id}
            label={text.compose(name)}
            people={people}
            fieldRef={field}
            onSent={(message) => {
              messages.add(message)
              setReadUpTo(undefined)
            }}
          />
        ) : (
          <Obstacle
            project={project}
            channel={channel}
            me={me}
            member={member}
            onJoined={() => {
              onChanged()
              list.reload()
            }}
          />
        )}
      </section>
      {thread !== '' ? (
        <Thread
          key={thread}
          around={around}
          root={thread}
          channel={channel}
          messages={messages}
          people={people}
        />
      ) : panel === 'search' ? (
        <Search project={project} channel={id} nameOf={nameOf} />
      ) : panel === 'pins' ? (
        <Pins project={project} channel={id} />
      ) : panel === 'exchanges' ? (
        <Exchanges project={project} channel={id} />
      ) : panel === 'members' ? (
        <Members project={project} channel={channel} list={list} writable={writable} />
      ) : null}
    </div>
  )
}
