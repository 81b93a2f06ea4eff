/** The settings of a channel, and the actions that archive and delete the channel. */
import { useState } from 'preact/hooks'
import type { Channel } from '../../../protocol/channels/schema.ts'
import { call } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { useSave } from '../../api/save.ts'
import { Checkbox, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Dialog, DialogActions, Menu, type MenuItem } from '../../design/overlay.tsx'
import { Failure } from '../../design/states.tsx'
import { useChanged } from '../../form/unsaved.ts'
import { go } from '../../router/router.ts'
import { channelsText as text } from './text.ts'

interface Props {
  readonly project: string
  readonly channel: Channel
  readonly onChanged: () => void
}

function Settings({
  project,
  channel,
  onChanged,
  onClose,
}: Props & { readonly onClose: () => void }) {
  const [name, setName] = useState(channel.display_name ?? '')
  const [topic, setTopic] = useState(channel.topic ?? '')
  const [closed, setClosed] = useState(channel.private)
  const { attempt, errorBeside, faultOf } = useRefusal()
  const update = useSave(channel)
  const { isChanged } = useChanged([name, topic, closed])
  const save = async (): Promise<void> => {
    await attempt(async () => {
      await update('channel.update', {
        project,
        id: channel.id,
        display_name: name.trim() || null,
        topic: topic.trim() || null,
        private: closed,
      })
      showDone(text.saved)
      onChanged()
      onClose()
    })
  }
  const remaining = errorBeside('display_name', 'topic')
  return (
    <Dialog title={text.settings} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        {remaining && <Failure error={remaining} />}
        <TextField
          label={text.displayName}
          fault={faultOf('display_name')}
          maxLength={120}
          value={name}
          onValue={setName}
        />
        <TextField
          label={text.topic}
          fault={faultOf('topic')}
          maxLength={1000}
          value={topic}
          onValue={setTopic}
        />
        <Checkbox label={text.makePrivate} checked={closed} onChecked={setClosed} />
        <DialogActions onClose={onClose} action={text.save} submit disabled={!isChanged} />
      </form>
    </Dialog>
  )
}

/** The menu of a channel for its administrators. */
export function ChannelActions({ project, channel, onChanged }: Props) {
  const [open, setOpen] = useState<'settings' | 'remove'>()
  const archived = channel.archived_at !== undefined
  const archive = async (): Promise<void> => {
    const archived_at = archived ? null : new Date().toISOString()
    await call('channel.update', { project, id: channel.id, archived_at })
    showDone(archived ? text.unarchivedDone : text.archivedDone)
    onChanged()
  }
  const items: MenuItem[] = [
    { label: text.settings, icon: 'settings', onSelect: () => setOpen('settings') },
    { label: archived ? text.unarchive : text.archive, icon: 'artifacts', onSelect: archive },
    { label: text.remove, icon: 'trash', danger: true, onSelect: () => setOpen('remove') },
  ]
  return (
    <>
      <Menu label={text.more} items={items} />
      {open === 'settings' && (
        <Settings
          project={project}
          channel={channel}
          onChanged={onChanged}
          onClose={() => setOpen(undefined)}
        />
      )}
      {open === 'remove' && (
        <Confirm
          title={text.removeTitle(channel.display_name ?? channel.name)}
          action={text.removeAction}
          danger
          onClose={() => setOpen(undefined)}
          onConfirm={async () => {
            await call('channel.delete', { project, id: channel.id })
            showDone(text.removed)
            go(`/p/${encodeURIComponent(project)}/channels`)
          }}
        >
          <p>{text.removeHint}</p>
        </Confirm>
      )}
    </>
  )
}
