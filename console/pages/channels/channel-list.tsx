/** The list of channels and direct messages, with their counts of unread messages. */
import { useState } from 'preact/hooks'
import type { Channel } from '../../../protocol/channels/schema.ts'
import { type Listing, useQuery } from '../../api/query.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { Checkbox } from '../../design/field.tsx'
import { Icon } from '../../design/icons.tsx'
import { MoreButton } from '../../design/listed.tsx'
import { Empty, Failure, Skeleton } from '../../design/states.tsx'
import { usePeople } from '../../people/people.ts'
import { formatNumber } from '../../text/format.ts'
import { channelsText as text } from './text.ts'

/** Returns the element id of the link to a channel. */
const channelLink = (id: string): string => `channel-${id}`
/** Returns the name to show for a channel. `useDirectName` names direct messages. */
export const nameOfChannel = ({ display_name, name }: Channel): string => display_name ?? name

/** Returns the names of the other members of a direct message; undefined until they are loaded. */
export function useDirectName(project: string, id: string | undefined): string | undefined {
  const { me, nameOf } = usePeople(project)
  const members = useQuery('channel.members', id ? { project, id, limit: 20 } : undefined).state
    .value.data
  if (!members) return undefined
  const others = members.items.filter(({ member_id }) => member_id !== me)
  return (others.length > 0 ? others : members.items)
    .map(({ member_id }) => nameOf(member_id) ?? member_id)
    .join(', ')
}

const DirectName = ({
  project,
  id,
  fallback,
}: {
  readonly project: string
  readonly id: string
  readonly fallback: string
}) => <>{useDirectName(project, id) ?? fallback}</>

function Entry({
  project,
  channel,
  selected,
}: {
  readonly project: string
  readonly channel: Channel
  readonly selected: boolean
}) {
  const unread = channel.unread_count ?? 0
  return (
    <li>
      <a
        id={channelLink(channel.id)}
        class={unread > 0 ? 'side-link unread' : 'side-link'}
        aria-current={selected ? 'page' : undefined}
        href={`/p/${encodeURIComponent(project)}/channels/${channel.id}`}
      >
        <Icon name={channel.kind === 'dm' ? 'user' : channel.private ? 'secrets' : 'channels'} />
        <span class="grow clip user-text">
          {channel.kind === 'dm' ? (
            <DirectName project={project} id={channel.id} fallback={channel.name} />
          ) : (
            nameOfChannel(channel)
          )}
        </span>
        {channel.private && channel.kind !== 'dm' && <span class="unseen">{text.closed}</span>}
        {channel.archived_at && <span class="soft small">{text.archived}</span>}
        {unread > 0 && (
          <span class="badge accent">
            <span aria-hidden="true">{formatNumber(unread)}</span>
            <span class="unseen"> {text.unread(unread)}</span>
          </span>
        )}
      </a>
    </li>
  )
}

/** Shows channels and direct messages. `onCreate` is absent for people who may not write. */
export function ChannelList({
  project,
  list,
  selected,
  onCreate,
}: {
  readonly project: string
  readonly list: Listing<Channel>
  readonly selected: string | undefined
  readonly onCreate?: (dm: boolean) => void
}) {
  const { items, loading, error } = list.state.value
  const [archived, setArchived] = useState(false)
  const shown = items.filter(
    ({ id, archived_at }) => archived_at === undefined || archived || id === selected,
  )
  const groups = [
    { dm: false, title: text.channels, action: text.create },
    { dm: true, title: text.direct, action: text.write },
  ]
  return (
    <nav class="channel-list" aria-label={text.list}>
      {error && <Failure error={error} retry={list.reload} />}
      {items.length === 0 && loading && <Skeleton />}
      {groups.map(({ dm, title, action }) => {
        const some = shown.filter(({ kind }) => (kind === 'dm') === dm)
        return (
          <section key={title}>
            <div class="row apart one-line">
              <h2 class="small soft">{title}</h2>
              {onCreate && <IconButton icon="plus" label={action} onClick={() => onCreate(dm)} />}
            </div>
            <ul>
              {some.map((channel) => (
                <Entry
                  key={channel.id}
                  project={project}
                  channel={channel}
                  selected={channel.id === selected}
                />
              ))}
            </ul>
          </section>
        )
      })}
      {items.length === 0 && !loading && !error && (
        <Empty icon="channels" title={text.noChannels}>
          <p>{text.noChannelsHint}</p>
          {onCreate && (
            <Button kind="primary" icon="plus" onClick={() => onCreate(false)}>
              {text.create}
            </Button>
          )}
        </Empty>
      )}
      <MoreButton of={list} />
      {items.some(({ archived_at }) => archived_at !== undefined) && (
        <Checkbox label={text.showArchived} checked={archived} onChecked={setArchived} />
      )}
    </nav>
  )
}
