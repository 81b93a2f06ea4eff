/** The members of a channel: the list, adding and removing members, and leaving. */

import { useState } from 'preact/hooks'
import type { Channel, ChannelMember } from '../../../protocol/channels/schema.ts'
import { call } from '../../api/client.ts'
import type { Listing } from '../../api/query.ts'
import { Button, IconButton } from '../../design/button.tsx'
import { SelectField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Badge } from '../../design/states.tsx'
import { designText } from '../../design/text.ts'
import { usePeople } from '../../people/people.ts'
import { Who } from '../../people/who.tsx'
import { Portrait } from './message.tsx'
import { Items, Panel } from './panel.tsx'
import { channelsText as text } from './text.ts'

function Add({
  project,
  channel,
  members,
}: {
  readonly project: string
  readonly channel: string
  readonly members: readonly ChannelMember[]
}) {
  const { all } = usePeople(project)
  const [chosen, setChosen] = useState('')
  const inside = new Set(members.map(({ member_id }) => member_id))
  const others = all.filter(({ id }) => !inside.has(id))
  const one = others.find(({ id }) => id === chosen) ?? others[0]
  if (!one) return null
  return (
    <form class="channel-add" onSubmit={(event) => event.preventDefault()}>
      <SelectField
        label={text.addMember}
        value={one.id}
        choices={others.map(({ id, name, kind }) => ({
          value: id,
          label: kind === 'agent' ? designText.detailed(name, text.agent) : name,
        }))}
        onValue={setChosen}
      />
      <Button
        onClick={async () => {
          const who = one.kind === 'agent' ? { agent_id: one.id } : { user_id: one.id }
          await call('channel.add_member', { project, id: channel, ...who })
          setChosen('')
        }}
      >
        {text.add}
      </Button>
    </form>
  )
}

/** Shows the panel. The members of direct messages cannot be changed. */
export function Members({
  project,
  channel,
  list,
  writable,
}: {
  readonly project: string
  readonly channel: Channel
  readonly list: Listing<ChannelMember>
  readonly writable: boolean
}) {
  const { me, nameOf } = usePeople(project)
  const members = list.state.value.items
  const own = members.find(({ member_id }) => member_id === me)
  const open = channel.kind !== 'dm' && channel.archived_at === undefined
  const remove = (id: string) =>
    call('channel.remove_member', { project, id: channel.id, user_id: id })
  return (
    <Panel title={text.panelMembers}>
      {writable && open && own?.role === 'admin' && (
        <Add project={project} channel={channel.id} members={members} />
      )}
      <Items
        list={list}
        empty={null}
        render={({ member_id: id, kind, role }) => (
          <li key={id} class="channel-member">
            <Portrait name={nameOf(id) ?? id} agent={kind === 'agent'} />
            <span class="grow clip">
              <Who project={project} id={id} />
              {id === me && <span class="soft"> ({text.you})</span>}
            </span>
            {role === 'admin' && <Badge>{text.admin}</Badge>}
            {kind === 'agent' && <Badge tone="info">{text.agent}</Badge>}
            {open && writable && id !== me && own?.role === 'admin' && (
              <IconButton
                icon="close"
                label={text.removeMember(nameOf(id) ?? id)}
                onClick={() => remove(id)}
              />
            )}
          </li>
        )}
      />
      {own && open && (
        <div>
          <Button
            danger
            onClick={async () => {
              await remove(me)
              showDone(text.left)
            }}
          >
            {text.leave}
          </Button>
        </div>
      )}
    </Panel>
  )
}
