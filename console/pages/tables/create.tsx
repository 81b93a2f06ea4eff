/** The dialog that creates a table. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useRefusal } from '../../api/refusal.ts'
import { SelectField, TextArea, TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Failure } from '../../design/states.tsx'
import { go } from '../../router/router.ts'
import { ColumnsEditor, columnsOf, editedColumn } from './columns.tsx'
import { tablesText as text } from './text.ts'

export function CreateTable({
  project,
  base,
  onClose,
}: {
  readonly project: string
  readonly base: string
  readonly onClose: () => void
}) {
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [columns, setColumns] = useState(
    () =>
      [
        editedColumn({ name: 'name', type: 'string', required: true }, false),
      ] as readonly ReturnType<typeof editedColumn>[],
  )
  const [identity, setIdentity] = useState('name')
  const [faults, setFaults] = useState<ReadonlyMap<number, string>>()
  const { error, attempt, faultOf } = useRefusal()
  const candidates = columns.filter(({ type, name: of }) => type === 'string' && of !== '')
  const chosen = candidates.some((one) => one.name === identity)
    ? identity
    : (candidates[0]?.name ?? '')
  const create = async (): Promise<void> => {
    const made = columnsOf(
      columns.map((one) => (one.name === chosen ? { ...one, required: true } : one)),
    )
    setFaults('faults' in made ? made.faults : undefined)
    if ('faults' in made) return
    await attempt(async () => {
      const { id } = await call('table.create', {
        project,
        name,
        ...(description !== '' && { description }),
        schema: { columns: made.columns, identity_column: chosen },
      })
      go(`${base}/${id}`)
    })
  }
  const nameFault = faultOf('name')
  return (
    <Dialog title={text.create} wide onClose={onClose}>
      <form class="stack" onSubmit={(event) => event.preventDefault()}>
        <TextField
          label={text.name}
          hint={text.nameHint}
          fault={nameFault}
          value={name}
          onValue={setName}
          maxLength={64}
        />
        <TextArea
          label={text.description}
          value={description}
          onValue={setDescription}
          maxLength={1000}
          rows={2}
        />
        <h3>{text.columns}</h3>
        <ColumnsEditor
          columns={columns}
          onColumns={setColumns}
          identity={chosen}
          isEmpty
          faults={faults}
          error={error}
        />
        <SelectField
          label={text.identity}
          hint={text.identityHint}
          value={chosen}
          choices={candidates.map((one) => ({ value: one.name, label: one.name }))}
          onValue={setIdentity}
        />
        {error && nameFault === undefined && <Failure error={error} />}
        <DialogActions
          onClose={onClose}
          action={text.create}
          submit
          disabled={name === '' || chosen === ''}
          onClick={create}
        />
      </form>
    </Dialog>
  )
}
