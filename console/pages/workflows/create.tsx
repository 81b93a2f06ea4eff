/** The dialog that creates a workflow from a template. */
import { useState } from 'preact/hooks'
import { ApiError, call, type FieldFault } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { TextField } from '../../design/field.tsx'
import { Dialog } from '../../design/overlay.tsx'
import { showError } from '../../design/toast.tsx'
import { faultAt } from '../../form/value.ts'
import { go } from '../../router/router.ts'
import { current } from '../../shell/session.ts'
import { Templates } from '../build/templates.tsx'
import { buildText } from '../build/text.ts'
import { templates } from './templates.ts'
import { workflowsText as text } from './text.ts'

/** Shows the dialog. It leads to the new workflow. */
export function CreateDialog({
  project,
  onClose,
}: {
  readonly project: string
  readonly onClose: () => void
}) {
  const [name, setName] = useState('')
  const [template, setTemplate] = useState(templates[0]?.id ?? '')
  const [faults, setFaults] = useState<readonly FieldFault[]>([])
  const create = async (): Promise<void> => {
    const chosen = templates.find(({ id }) => id === template)
    try {
      const made = await call('workflow.create', {
        project,
        name: name.trim(),
        spec: chosen?.spec(current.peek()?.principal.id ?? '') as never,
      })
      go(`/p/${encodeURIComponent(project)}/workflows/${made.id}`, { replace: true })
    } catch (error) {
      setFaults(error instanceof ApiError ? error.fields : [])
      throw error
    }
  }
  return (
    <Dialog title={text.create} onClose={onClose}>
      <form
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void create().catch(showError)
        }}
      >
        <TextField
          label={text.name}
          value={name}
          required
          autocomplete="off"
          maxLength={160}
          fault={faultAt(faults, 'name') ?? faultAt(faults, 'handle')}
          onValue={setName}
        />
        <Templates
          label={text.template}
          templates={templates}
          chosen={template}
          onChosen={setTemplate}
        />
        <div class="actions">
          <Button onClick={onClose}>{buildText.cancel}</Button>
          <Button kind="primary" disabled={name.trim() === ''} onClick={create}>
            {text.createAction}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
