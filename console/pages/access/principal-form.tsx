/** The dialog that adds or changes a person or a service, including the roles. */
import { useState } from 'preact/hooks'
import type { PrincipalRecord } from '../../../protocol/access/rows.ts'
import { call } from '../../api/client.ts'
import { useSave } from '../../api/save.ts'
import { Checkbox, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { FormDialog } from '../../form/dialog.tsx'
import { useChanged } from '../../form/unsaved.ts'
import { type Role, useRoles } from './roles-of.ts'
import { accessText as text } from './text.ts'

/** Checkboxes for the roles of a principal. */
const RoleChoice = ({
  roles,
  chosen,
  onChosen,
  fault,
}: {
  readonly roles: readonly Role[]
  readonly chosen: readonly string[]
  readonly onChosen: (ids: readonly string[]) => void
  readonly fault?: string | undefined
}) => (
  <fieldset class="choices">
    <legend class="label">{text.roles}</legend>
    <div class="hint small soft">{text.noRolesHint}</div>
    {roles.map(({ id, name, description }) => (
      <Checkbox
        key={id}
        checked={chosen.includes(id)}
        onChecked={(on) => onChosen(on ? [...chosen, id] : chosen.filter((one) => one !== id))}
        label={
          <>
            <span class="user-text">{name}</span>
            {description && <span class="small soft user-text"> {description}</span>}
          </>
        }
      />
    ))}
    {fault && <div class="fault small">{fault}</div>}
  </fieldset>
)

/** Shows the dialog. Without `of`, it adds a principal. */
export function PrincipalForm({
  project,
  person,
  of,
  onClose,
}: {
  readonly project: string
  /** Whether the principal is a person. Otherwise it is a service. */
  readonly person: boolean
  readonly of?: PrincipalRecord
  readonly onClose: (changed?: PrincipalRecord) => void
}) {
  const roles = useRoles(project)
  const [name, setName] = useState(of?.name ?? '')
  const [email, setEmail] = useState(of?.email ?? '')
  const [description, setDescription] = useState(of?.description ?? '')
  const [chosen, setChosen] = useState<readonly string[]>(
    of?.role_ids ?? (of ? [] : ['role_operator']),
  )
  const save = useSave(of)
  const { isChanged } = useChanged([name, email, description, chosen])
  const submit = async (): Promise<void> => {
    // Only changed fields are sent, so concurrent changes to other fields are kept.
    const changes = {
      ...(description !== (of?.description ?? '') && { description }),
      ...(chosen.join() !== (of?.role_ids ?? []).join() && { role_ids: [...chosen] }),
    }
    const changesOfPerson = {
      ...(name !== of?.name && { name }),
      ...(email !== (of?.email ?? '') && { email }),
      ...changes,
    }
    const id = of?.id ?? ''
    const changed = of
      ? person
        ? await save('user.update', { project, id, ...changesOfPerson })
        : await save('principal.update', { project, id, ...changes })
      : person
        ? await call('user.create', { project, ...changesOfPerson, name })
        : await call('principal.create', { project, ...changes, name })
    showDone(of ? text.saved : text.added)
    onClose(changed)
  }
  const title = person
    ? of
      ? text.editPerson
      : text.addPerson
    : of
      ? text.editService
      : text.addService
  return (
    <FormDialog
      title={title}
      action={of ? text.save : text.add}
      disabled={of !== undefined && !isChanged}
      onSubmit={submit}
      onClose={() => onClose()}
    >
      {(faultOf) => (
        <>
          <TextField
            label={text.name}
            required
            maxLength={128}
            disabled={!person && of !== undefined}
            fault={faultOf('name')}
            value={name}
            onValue={setName}
          />
          {person && (
            <TextField
              label={text.email}
              type="email"
              autocomplete="off"
              hint={text.emailHint}
              fault={faultOf('email')}
              value={email}
              onValue={setEmail}
            />
          )}
          <TextArea
            label={text.description}
            rows={2}
            maxLength={1024}
            fault={faultOf('description')}
            value={description}
            onValue={setDescription}
          />
          <RoleChoice
            roles={roles}
            chosen={chosen}
            onChosen={setChosen}
            fault={faultOf('role_ids')}
          />
        </>
      )}
    </FormDialog>
  )
}
