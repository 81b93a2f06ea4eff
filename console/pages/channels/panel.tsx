/** The panel beside a channel: a thread, a search, pinned messages, requests to agents, members. */

import { type Signal, useSignal } from '@preact/signals'
import { type ComponentChildren, Fragment } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Channel, ChannelMessage } from '../../../protocol/channels/schema.ts'
import { cutText } from '../../../protocol/rules/cut-text.ts'
import { ApiError, call } from '../../api/client.ts'
import { type Listing, useList } from '../../api/query.ts'
import { IconButton } from '../../design/button.tsx'
import { Checkbox, SearchField } from '../../design/field.tsx'
import { MoreButton } from '../../design/listed.tsx'
import { Badge, Empty, Failure, Skeleton, type Tone } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { Markdown } from '../../markdown/markdown.tsx'
import { Who } from '../../people/who.tsx'
import { setQuery } from '../../router/router.ts'
import { Composer } from './composer.tsx'
import { repliesOf } from './feed.ts'
import type { Mentionable } from './mention.ts'
import { type MessageContext, MessageLine } from './message.tsx'
import { channelsText as text } from './text.ts'
import type { Messages } from './use-messages.ts'

/** Frame of a panel, with its title and a button that closes it. */
export function Panel({
  title,
  children,
}: {
  readonly title: string
  readonly children: ComponentChildren
}) {
  const top = useRef<HTMLHeadingElement>(null)
  const close = (): void => {
    setQuery({ panel: '', thread: '' })
    document.querySelector<HTMLElement>('.channel-head h2')?.focus()
  }
  useEffect(() => top.current?.focus(), [title])
  return (
    <aside
      class="channel-panel"
      aria-label={title}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || event.defaultPrevented) return
        event.preventDefault()
        close()
      }}
    >
      <header class="row apart">
        <h2 ref={top} tabIndex={-1}>
          {title}
        </h2>
        <IconButton icon="close" label={text.closePanel} onClick={close} />
      </header>
      {children}
    </aside>
  )
}

/** Shows the items of a list, with its loading, failed and empty states. */
export function Items<T>({
  list,
  empty,
  render,
}: {
  readonly list: Listing<T>
  readonly empty: ComponentChildren
  readonly render: (item: T) => ComponentChildren
}) {
  const { items, loading, error } = list.state.value
  return (
    <div class="panel-body">
      {error && <Failure error={error} retry={list.reload} />}
      {items.length === 0 && (loading ? <Skeleton /> : !error && empty)}
      <ul class="stack">{items.map(render)}</ul>
      <MoreButton of={list} />
    </div>
  )
}

/** A message in a list of results, with a link to its place in the channel. */
const Found = ({
  project,
  message,
  channel,
}: {
  readonly project: string
  readonly message: ChannelMessage
  /** Name of the channel, in a search of all channels. */
  readonly channel?: string | undefined
}) => {
  const { id, channel_id, reply_to, sender_id, created_at, content } = message
  const query = new URLSearchParams(
    reply_to ? { message: reply_to, thread: reply_to } : { message: id },
  )
  const to = `/p/${encodeURIComponent(project)}/channels/${channel_id}?${query}`
  return (
    <li class="channel-found">
      <div class="row small">
        <strong>
          <Who project={project} id={sender_id} />
        </strong>
        {channel !== undefined && <span class="soft user-text">{channel}</span>}
        <a class="soft" href={to} aria-label={text.toMessage}>
          <Time at={created_at} />
        </a>
      </div>
      <Markdown text={content.length > 600 ? `${cutText(content, 600)}…` : content} />
    </li>
  )
}

/** Shows the thread of a message, and a composer for replies. */
export function Thread({
  around,
  root,
  channel,
  messages,
  people,
}: {
  readonly around: MessageContext
  readonly root: string
  readonly channel: Channel
  readonly messages: Messages
  readonly people: readonly Mentionable[]
}) {
  const { project } = around
  const { feed } = messages.state.value
  const [error, setError] = useState<ApiError>()
  const loaded = useSignal(false)
  useEffect(() => {
    loaded.value = false
    let over = false
    // Replies may be older than the loaded part of the channel, so they are loaded separately.
    const load = async (): Promise<void> => {
      const at = { project, id: channel.id }
      const [first, page] = await Promise.all([
        call('channel.message', { ...at, message_id: root }),
        call('channel.messages', { ...at, reply_to: root, limit: 200 }),
      ])
      if (over) return
      extra.value = [first, ...page.items]
      loaded.value = true
    }
    load().catch((failure: unknown) => {
      if (!(failure instanceof ApiError)) throw failure
      setError(failure)
    })
    return () => {
      over = true
    }
  }, [root])
  const extra = useSignal<readonly ChannelMessage[]>([])
  const shown = useMemo(() => {
    const known = new Map(extra.value.map((one) => [one.id, one]))
    for (const one of feed.items) if (one.id === root) known.set(one.id, one)
    for (const one of repliesOf(feed, root)) known.set(one.id, one)
    return [...known.values()].sort((a, b) => a.seq - b.seq)
  }, [feed, extra.value, root])
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => end.current?.scrollIntoView({ block: 'nearest' }), [shown.length])
  const inThread: MessageContext = { ...around, threads: false, active: useActive() }
  return (
    <Panel title={text.panelThread}>
      <div class="panel-body">
        {error && <Failure error={error} />}
        {!loaded.value && !error && shown.length === 0 && <Skeleton />}
        <ol class="post-list">
          {shown.map((message) => (
            <Fragment key={message.id}>
              <MessageLine around={inThread} message={message} head />
              {message.id === root && (
                <li class="post-divider">
                  <span>{text.replies(shown.length - 1)}</span>
                </li>
              )}
            </Fragment>
          ))}
        </ol>
        <div ref={end} />
      </div>
      {around.writable && (
        <Composer
          key={root}
          project={project}
          channel={channel.id}
          label={text.composeReply}
          replyTo={root}
          people={people}
          onSent={messages.add}
        />
      )}
    </Panel>
  )
}
const useActive = (): Signal<string> => useSignal('')

/** Delay between the last key press and the search. */
const TYPING_MS = 250

/** Searches messages in this channel, or in all channels that the person can read. */
export function Search({
  project,
  channel,
  nameOf,
}: {
  readonly project: string
  readonly channel: string
  readonly nameOf: (channel: string) => string | undefined
}) {
  const [typed, setTyped] = useState('')
  const [wanted, setWanted] = useState('')
  const [everywhere, setEverywhere] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setWanted(typed.trim()), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed])
  const input =
    wanted === ''
      ? undefined
      : { project, q: wanted.slice(0, 256), limit: 30, ...(!everywhere && { channel_id: channel }) }
  const list = useList('channel.search', input)
  return (
    <Panel title={text.panelSearch}>
      <div class="stack close">
        <SearchField label={text.searchLabel} value={typed} onValue={setTyped} />
        <Checkbox label={text.searchEverywhere} checked={everywhere} onChecked={setEverywhere} />
      </div>
      {input === undefined ? (
        <p class="soft">{text.searchHint}</p>
      ) : (
        <Items
          list={list}
          empty={<p class="soft">{text.noResults}</p>}
          render={(message) => (
            <Found
              key={message.id}
              project={project}
              message={message}
              channel={everywhere ? nameOf(message.channel_id) : undefined}
            />
          )}
        />
      )}
    </Panel>
  )
}

/** Lists the pinned messages of a channel. */
export function Pins({ project, channel }: { readonly project: string; readonly channel: string }) {
  const list = useList(
    'channel.messages',
    { project, id: channel, pinned: true, limit: 50 },
    { kinds: ['channel'], id: channel },
  )
  return (
    <Panel title={text.panelPins}>
      <Items
        list={list}
        empty={
          <Empty icon="pin" title={text.noPins}>
            <p>{text.noPinsHint}</p>
          </Empty>
        }
        render={(message) => <Found key={message.id} project={project} message={message} />}
      />
    </Panel>
  )
}

const outcomes: Readonly<Record<string, readonly [string, Tone]>> = {
  running: [text.running, 'info'],
  completed: [text.completed, 'good'],
  failed: [text.failed, 'bad'],
  cancelled: [text.cancelled, 'neutral'],
}
/** Lists the exchanges with agents in a channel, with their outcomes. */
export function Exchanges({
  project,
  channel,
}: {
  readonly project: string
  readonly channel: string
}) {
  const list = useList(
    'channel.exchanges',
    { project, id: channel, limit: 30 },
    { kinds: ['channel'], id: channel },
  )
  const base = `/p/${encodeURIComponent(project)}`
  return (
    <Panel title={text.panelExchanges}>
      <Items
        list={list}
        empty={
          <Empty icon="agents" title={text.noExchanges}>
            <p>{text.noExchangesHint}</p>
          </Empty>
        }
        render={(one) => {
          const [label, tone] = outcomes[one.status] ?? [one.status, 'neutral']
          const root = one.reply_to ?? one.message_id
          return (
            <li key={one.id} class="channel-found">
              <div class="row small">
                <strong>
                  <Who project={project} id={one.agent_id} />
                </strong>
                <Badge tone={tone}>{label}</Badge>
                <span class="soft">
                  <Time at={one.created_at} relative />
                </span>
              </div>
              {one.error_message && <p class="soft small user-text">{one.error_message}</p>}
              <div class="row small">
                <a href={`${base}/channels/${channel}?message=${root}&thread=${root}`}>
                  {text.toMessage}
                </a>
                {one.session_id && (
                  <a href={`${base}/sessions/${encodeURIComponent(one.session_id)}`}>
                    {text.session}
                  </a>
                )}
              </div>
            </li>
          )
        }}
      />
    </Panel>
  )
}
