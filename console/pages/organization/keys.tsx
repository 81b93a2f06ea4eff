/** The API keys of the organization. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Listed } from '../../design/listed.tsx'
import { Empty } from '../../design/states.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page } from '../../shell/page.tsx'
import { ExpiryField, expiryOf, usualExpiry } from '../access/keys/expiry.tsx'
import { KeyTable } from '../access/keys/key-table.tsx'
import { ShownOnce } from '../access/keys/shown-once.tsx'
import { accessText } from '../access/text.ts'
import { useOrganizationChanges } from './changes.ts'
import { organizationText as text } from './text.ts'

type Created = CallReply<'key.create_organization'>
type Role = NonNullable<Created['org_role']>
const roles: readonly Role[] = ['Viewer', 'Operator', 'Editor', 'Admin', 'Owner']

function NewOrganizationKey({ onClose }: { readonly onClose: (created?: Created) => void }) {
  const [name, setName] = useState('')
  const [role, setRole] = useState<Role>('Viewer')
  const [days, setDays] = useState(usualExpiry)
  return (
    <FormDialog
      title={accessText.newKey}
      action={text.create}
      onSubmit={async () =>
        onClose(
          await call('key.create_organization', { name, role, ...expiryOf(days, Date.now()) }),
        )
      }
      onClose={() => onClose()}
    >
      {(faultOf) => (
        <>
          <TextField
            label={text.name}
            required
            maxLength={128}
            fault={faultOf('name')}
            value={name}
            onValue={setName}
          />
          <SelectField
            label={text.keyRole}
            hint={text.keyRoleHint}
            choices={roles.map((one) => ({ value: one, label: one }))}
            fault={faultOf('role')}
            value={role}
            onValue={(next) => setRole(next as Role)}
          />
          <ExpiryField value={days} faultOf={faultOf} onValue={setDays} />
        </>
      )}
    </FormDialog>
  )
}

export default function OrganizationKeysPage() {
  const list = useList('key.list_organization', { limit: 100 })
  useOrganizationChanges(['key'], list.reload)
  const [created, setCreated] = useState<Created>()
  const isNew = currentUrl.value.query.get('new') !== null
  return (
    <Page
      title={text.keysTitle}
      actions={
        <>
          <CopyCall name="key.list_organization" input={{}} />
          <Button kind="primary" icon="plus" onClick={() => setQuery({ new: '1' }, { push: true })}>
            {accessText.newKey}
          </Button>
        </>
      }
    >
      <p class="soft">{text.keysHint}</p>
      <Listed of={list} empty={<Empty icon="keys" title={accessText.noKeys} />}>
        {(items) => (
          <KeyTable
            label={text.keysTitle}
            items={items}
            further={[{ name: text.keyRole, cell: ({ org_role }) => org_role ?? '–' }]}
            revoke={async ({ id }) => {
              await call('key.revoke_organization', { id })
              list.reload()
            }}
          />
        )}
      </Listed>
      {isNew && (
        <NewOrganizationKey
          onClose={(key) => {
            setQuery({ new: undefined })
            setCreated(key)
            if (key) list.reload()
          }}
        />
      )}
      {created && (
        <ShownOnce
          title={accessText.keyCreated}
          value={created.key}
          example={`curl -H "Authorization: Bearer ${created.key}" ${location.origin}/v1/projects`}
          onClose={() => setCreated(undefined)}
        />
      )}
    </Page>
  )
}
