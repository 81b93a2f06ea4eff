/** The dialog that creates or changes a role. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useSave } from '../../api/save.ts'
import { Checkbox, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Badge } from '../../design/states.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { useChanged } from '../../form/unsaved.ts'
import { actionPermissionsOf, isAction } from './permissions.ts'
import type { Role } from './roles-of.ts'
import { accessText as text } from './text.ts'

type Permission = CallReply<'permission.list'>['items'][number]

/** Shows the dialog. Without `of`, it creates a role. */
export function RoleForm({
  project,
  of,
  catalog,
  onClose,
}: {
  readonly project: string
  readonly of?: Role
  readonly catalog: readonly Permission[]
  readonly onClose: (changed: boolean) => void
}) {
  const [name, setName] = useState(of?.name ?? '')
  const [description, setDescription] = useState(of?.description ?? '')
  const [chosen, setChosen] = useState<readonly string[]>(
    of?.permissions.filter((one) => !isAction(one)) ?? [],
  )
  const [actions, setActions] = useState(of?.permissions.filter(isAction).join('\n') ?? '')
  const save = useSave(of)
  const { isChanged } = useChanged([description, chosen, actions])
  const submit = async (): Promise<void> => {
    const permissions = [...chosen, ...actionPermissionsOf(actions)]
    if (of)
      await save('role.update', {
        project,
        id: of.id,
        permissions,
        ...(description !== (of.description ?? '') && { description }),
      })
    else
      await call('role.create', {
        project,
        name,
        permissions,
        ...(description !== '' && { description }),
      })
    showDone(text.saved)
    onClose(true)
  }
  return (
    <FormDialog
      title={of ? text.editRole : text.newRole}
      action={of ? text.save : text.create}
      disabled={of !== undefined && !isChanged}
      onSubmit={submit}
      onClose={() => onClose(false)}
    >
      {(faultOf) => (
        <>
          <TextField
            label={text.name}
            required
            maxLength={128}
            disabled={of !== undefined}
            fault={faultOf('name')}
            value={name}
            onValue={setName}
          />
          <TextField
            label={text.description}
            maxLength={1024}
            fault={faultOf('description')}
            value={description}
            onValue={setDescription}
          />
          <fieldset class="choices">
            <legend class="label">{text.permissions}</legend>
            {catalog
              .filter(({ id, assignable }) => assignable && !isAction(id))
              .map(({ id, label, description: what, risk }) => (
                <Checkbox
                  key={id}
                  checked={chosen.includes(id)}
                  onChecked={(on) =>
                    setChosen(on ? [...chosen, id] : chosen.filter((one) => one !== id))
                  }
                  label={
                    <>
                      {label}{' '}
                      {(risk === 'high' || risk === 'critical') && (
                        <Badge tone="warn">{text.risk(risk)}</Badge>
                      )}
                      <span class="small soft"> {what}</span>
                    </>
                  }
                />
              ))}
          </fieldset>
          <TextArea
            label={text.actionPermissions}
            hint={text.actionPermissionsHint}
            rows={2}
            spellcheck={false}
            fault={faultOf('permissions')}
            value={actions}
            onValue={setActions}
          />
        </>
      )}
    </FormDialog>
  )
}
