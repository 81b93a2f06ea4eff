/** The dialog that creates an API key of a project. */
import { useRef, useState } from 'preact/hooks'
import { type CallReply, call } from '../../../api/client.ts'
import { useQuery } from '../../../api/query.ts'
import { SelectField, TextField } from '../../../design/field.tsx'
import { FormDialog } from '../../../form/dialog.tsx'
import { may } from '../../../shell/session.ts'
import { useRoles } from '../roles-of.ts'
import { accessText as text } from '../text.ts'
import { ExpiryField, expiryOf, usualExpiry } from './expiry.tsx'

/** A created key, with its value. */
export type CreatedKey = CallReply<'key.create'>

/** Shows the dialog. `onClose` receives the created key, or nothing after a cancellation. */
export function NewKey({
  project,
  onClose,
}: {
  readonly project: string
  readonly onClose: (created?: CreatedKey) => void
}) {
  const roles = useRoles(project)
  const services =
    useQuery('principal.list', { project, kind: 'service', limit: 200 }, { kinds: ['principal'] })
      .state.value.data?.items ?? []
  const [name, setName] = useState('')
  const [principal, setPrincipal] = useState('')
  const [role, setRole] = useState('role_operator')
  const born = useRef<{ readonly id: string; readonly name: string; readonly role: string }>(
    undefined,
  )
  const [days, setDays] = useState(usualExpiry)
  const submit = async (): Promise<void> => {
    const principal_id = principal === '' ? await newService() : principal
    onClose(
      await call('key.create', {
        project,
        name,
        ...(principal_id !== undefined && { principal_id }),
        // The role limits the permissions of the key. The key of a new service needs no limit,
        // because the service has exactly this role.
        ...(role !== '' &&
          (principal !== '' || principal_id === undefined) && {
            scope_role_id: role,
          }),
        ...expiryOf(days, Date.now()),
      }),
    )
  }
  /**
   * Creates a principal of the kind `service` with the chosen role. Returns undefined if the person
   * may not create one. If the creation of the key fails, a retry with the same name and role
   * reuses the principal.
   */
  const newService = async (): Promise<string | undefined> => {
    if (!may('project.admin')) return undefined
    if (born.current?.name !== name || born.current.role !== role) {
      const { id } = await call('principal.create', { project, name, role_ids: [role] })
      born.current = { id, name, role }
    }
    return born.current.id
  }
  const roleChoices = roles.map(({ id, name: label }) => ({ value: id, label }))
  return (
    <FormDialog
      title={text.newKey}
      action={text.create}
      onSubmit={submit}
      onClose={() => onClose()}
    >
      {(faultOf) => (
        <>
          <TextField
            label={text.keyName}
            hint={text.keyNameHint}
            required
            maxLength={128}
            fault={faultOf('name')}
            value={name}
            onValue={setName}
          />
          <SelectField
            label={text.principal}
            hint={principal === '' ? text.newPrincipalHint : text.ownPrincipal}
            choices={[
              { value: '', label: text.newPrincipal },
              ...services.map(({ id, name: label }) => ({ value: id, label })),
            ]}
            fault={faultOf('principal_id')}
            value={principal}
            onValue={(id) => {
              setPrincipal(id)
              setRole(id === '' ? 'role_operator' : '')
            }}
          />
          <SelectField
            label={principal === '' ? text.scope : text.scopeLimit}
            choices={
              principal === '' ? roleChoices : [{ value: '', label: text.noLimit }, ...roleChoices]
            }
            fault={faultOf('scope_role_id')}
            value={role}
            onValue={setRole}
          />
          <ExpiryField value={days} faultOf={faultOf} onValue={setDays} />
        </>
      )}
    </FormDialog>
  )
}
