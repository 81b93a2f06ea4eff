/** Dialogs that create a channel or open a direct message. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Checkbox, SearchField, TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Failure } from '../../design/states.tsx'
import { usePeople } from '../../people/people.ts'
import { go } from '../../router/router.ts'
import { channelsText as text } from './text.ts'

function People({
  project,
  chosen,
  onChosen,
}: {
  readonly project: string
  readonly chosen: ReadonlySet<string>
  readonly onChosen: (chosen: ReadonlySet<string>) => void
}) {
  const { all, me } = usePeople(project)
  const [typed, setTyped] = useState('')
  const wanted = typed.trim().toLowerCase()
  const shown = all.filter(
    ({ id, name }) => id !== me && (chosen.has(id) || name.toLowerCase().includes(wanted)),
  )
  return (
    <fieldset class="people-choice">
      <legend class="label">{text.members}</legend>
      <SearchField label={text.searchPeople} value={typed} onValue={setTyped} />
      <div class="people-options">
        {shown.length === 0 && <p class="soft">{text.noMatch}</p>}
        {shown.map(({ id, name, kind }) => (
          <Checkbox
            key={id}
            label={
              <span>
                <span class="user-text">{name}</span>
                {kind === 'agent' && <span class="soft"> · {text.agent}</span>}
              </span>
            }
            checked={chosen.has(id)}
            onChecked={(on) => {
              const next = new Set(chosen)
              if (on) next.add(id)
              else next.delete(id)
              onChosen(next)
            }}
          />
        ))}
      </div>
    </fieldset>
  )
}

/** Shows the dialog that creates a channel or, with `dm`, opens a direct message. */
export function Create({
  project,
  dm,
  onClose,
}: {
  readonly project: string
  readonly dm: boolean
  readonly onClose: () => void
}) {
  const [name, setName] = useState('')
  const [shownName, setShownName] = useState('')
  const [topic, setTopic] = useState('')
  const [closed, setClosed] = useState(false)
  const [members, setMembers] = useState<ReadonlySet<string>>(new Set())
  const { attempt, errorBeside, faultOf } = useRefusal()
  const submit = async (): Promise<void> => {
    await attempt(async () => {
      const channel = await call('channel.create', {
        project,
        member_ids: [...members],
        ...(dm
          ? { kind: 'dm' as const }
          : {
              name: name.trim(),
              private: closed,
              ...(shownName.trim() !== '' && { display_name: shownName.trim() }),
              ...(topic.trim() !== '' && { topic: topic.trim() }),
            }),
      })
      onClose()
      go(`/p/${encodeURIComponent(project)}/channels/${channel.id}`)
    })
  }
  const remaining = errorBeside(...(dm ? [] : ['name', 'display_name', 'topic']))
  return (
    <Dialog title={dm ? text.write : text.create} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {remaining && <Failure error={remaining} />}
        {dm ? (
          <p class="soft">{text.dmHint}</p>
        ) : (
          <>
            <TextField
              label={text.name}
              hint={text.nameHint}
              fault={faultOf('name')}
              required
              maxLength={80}
              value={name}
              onValue={(value) => setName(value.toLowerCase().replace(/\s+/g, '-'))}
            />
            <TextField
              label={text.displayName}
              fault={faultOf('display_name')}
              maxLength={120}
              value={shownName}
              onValue={setShownName}
            />
            <TextField
              label={text.topic}
              fault={faultOf('topic')}
              maxLength={1000}
              value={topic}
              onValue={setTopic}
            />
            <Checkbox label={text.makePrivate} checked={closed} onChecked={setClosed} />
          </>
        )}
        <People project={project} chosen={members} onChosen={setMembers} />
        <DialogActions
          onClose={onClose}
          action={dm ? text.openDm : text.createAction}
          submit
          disabled={dm ? members.size === 0 : name.trim() === ''}
        />
      </form>
    </Dialog>
  )
}
