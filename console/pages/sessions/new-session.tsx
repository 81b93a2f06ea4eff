/** The dialog that starts a session with an agent. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Checkbox, SelectField, TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Failure } from '../../design/states.tsx'
import { go } from '../../router/router.ts'
import type { AgentRecord } from './agents.ts'
import { sessionsText as text } from './text.ts'

/** Asks for the agent and the title of a session, starts it and opens its page. */
export function NewSession({
  project,
  agents,
  agent,
  onClose,
}: {
  readonly project: string
  readonly agents: readonly AgentRecord[]
  /** Id of the agent that is initially selected. */
  readonly agent: string
  readonly onClose: () => void
}) {
  const usable = agents.filter(({ status }) => status === 'active')
  const [chosen, setChosen] = useState(agent)
  const [title, setTitle] = useState('')
  const [key, setKey] = useState('')
  const [isPrivate, setPrivate] = useState(false)
  const { attempt, errorBeside, faultOf } = useRefusal()
  const agent_id = usable.some(({ id }) => id === chosen) ? chosen : (usable[0]?.id ?? '')
  const start = async (): Promise<void> => {
    await attempt(async () => {
      const { id } = await call('session.create', {
        project,
        agent_id,
        mode: key.trim() === '' ? 'new' : 'continue_or_create',
        ...(title.trim() !== '' && { title: title.trim() }),
        ...(key.trim() !== '' && { session_key: key.trim() }),
        ...(isPrivate && { visibility: 'private' as const }),
      })
      go(`/p/${encodeURIComponent(project)}/sessions/${id}`)
    })
  }
  const remaining = errorBeside('agent_id', 'title', 'session_key')
  return (
    <Dialog title={text.create} onClose={onClose}>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        <SelectField
          label={text.agent}
          value={agent_id}
          choices={usable.map(({ id, name }) => ({ value: id, label: name }))}
          fault={faultOf('agent_id')}
          onValue={setChosen}
        />
        <TextField
          label={text.titleField}
          hint={text.titleHint}
          value={title}
          fault={faultOf('title')}
          maxLength={512}
          onValue={setTitle}
        />
        <TextField
          label={text.keyField}
          hint={text.keyHint}
          value={key}
          fault={faultOf('session_key')}
          maxLength={512}
          onValue={setKey}
        />
        <Checkbox label={text.privateField} checked={isPrivate} onChecked={setPrivate} />
        {remaining && <Failure error={remaining} />}
        <DialogActions
          onClose={onClose}
          action={text.createAction}
          submit
          disabled={agent_id === ''}
          onClick={start}
        />
      </form>
    </Dialog>
  )
}
