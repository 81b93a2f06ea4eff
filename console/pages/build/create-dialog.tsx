/** The dialog that creates a named record from a template. */
import { useState } from 'preact/hooks'
import { TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { useFaults } from '../../form/faults.ts'
import { faultAt } from '../../form/value.ts'
import { Templates } from './templates.tsx'
import { buildText as text } from './text.ts'

/** Shows the dialog. The first template is selected initially. */
export function CreateFromTemplate<T extends { id: string; label: string; hint: string }>({
  title,
  label,
  templates,
  onCreate,
  onClose,
}: {
  readonly title: string
  /** Label of the template choice. */
  readonly label: string
  readonly templates: readonly Readonly<T>[]
  /** Creates the record. Faults of the name or handle are shown next to the name field. */
  readonly onCreate: (name: string, template: Readonly<T>) => Promise<void>
  readonly onClose: () => void
}) {
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState(templates[0]?.id ?? '')
  const { faults, attempt } = useFaults()
  const create = async (): Promise<void> => {
    const template = templates.find(({ id }) => id === chosen)
    if (!template || name.trim() === '') return
    await attempt(async () => {
      await onCreate(name.trim(), template)
    })
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" noValidate onSubmit={(event) => event.preventDefault()}>
        <TextField
          label={text.name}
          value={name}
          required
          autocomplete="off"
          maxLength={160}
          fault={faultAt(faults, 'name') ?? faultAt(faults, 'handle')}
          onValue={setName}
        />
        <Templates label={label} templates={templates} chosen={chosen} onChosen={setChosen} />
        <DialogActions
          onClose={onClose}
          action={text.create}
          submit
          disabled={name.trim() === ''}
          onClick={create}
        />
      </form>
    </Dialog>
  )
}
