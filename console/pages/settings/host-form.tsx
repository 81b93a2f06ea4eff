/** The dialog that adds or replaces a repository host, including its keys and tokens. */
import { useState } from 'preact/hooks'
import type { HostKind, RepositoryHost } from '../../../protocol/repositories/rows.ts'
import { call } from '../../api/client.ts'
import { type Save, useSave } from '../../api/save.ts'
import { SelectField, TextArea, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Notice } from '../../design/states.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { settingsText as text } from './text.ts'

/** Labels of the kinds of hosts. */
export const kindName: Readonly<Record<HostKind, string>> = {
  github_app: text.github,
  gitlab: text.gitlab,
  token: text.token,
}
type FieldName =
  | 'url'
  | 'app_id'
  | 'installation_id'
  | 'username'
  | 'private_key'
  | 'api_token'
  | 'read_token'
  | 'push_token'
interface Shown {
  readonly name: FieldName
  readonly label: string
  readonly required?: true
  readonly secret?: true
}
const url: Shown = { name: 'url', label: text.url }
/** The fields of each kind, in display order. */
const fields: Readonly<Record<HostKind, readonly Shown[]>> = {
  github_app: [
    url,
    { name: 'app_id', label: text.appId, required: true },
    { name: 'installation_id', label: text.installation },
    { name: 'private_key', label: text.privateKey, required: true, secret: true },
  ],
  gitlab: [url, { name: 'api_token', label: text.apiToken, required: true, secret: true }],
  token: [
    { ...url, required: true },
    { name: 'username', label: text.username },
    { name: 'read_token', label: text.readToken, required: true, secret: true },
    { name: 'push_token', label: text.pushToken, secret: true },
  ],
}
const DEFAULT_URL = { github_app: 'https://github.com', gitlab: 'https://gitlab.com', token: '' }

/** Shows the dialog. `of` is the host to replace. Without it, a host is added. */
export function HostForm({
  project,
  of,
  onClose,
}: {
  readonly project: string
  readonly of?: RepositoryHost
  readonly onClose: (saved: boolean) => void
}) {
  const [name, setName] = useState(of?.name ?? '')
  const [kind, setKind] = useState<HostKind>(of?.kind ?? 'github_app')
  const [values, setValues] = useState<Partial<Record<FieldName, string>>>({
    url: of?.url ?? '',
    app_id: of?.app_id ?? '',
    installation_id: of?.installation_id ?? '',
    username: of?.username ?? '',
  })
  const save = useSave(of)
  const submit = async (): Promise<void> => {
    const given = Object.fromEntries(
      fields[kind].flatMap((field) => {
        const value = values[field.name] ?? ''
        return value === '' ? [] : [[field.name, value]]
      }),
    )
    const request: Save = of ? save : call
    await request('repository_host.put', { project, host_name: name, kind, ...given })
    showDone(text.hostSaved)
    onClose(true)
  }
  return (
    <FormDialog
      title={of ? text.replaceHost : text.newHost}
      action={text.save}
      onSubmit={submit}
      onClose={() => onClose(false)}
    >
      {(faultOf) => (
        <>
          {of && <Notice>{text.replaceHint}</Notice>}
          <TextField
            label={text.hostName}
            required
            maxLength={64}
            disabled={of !== undefined}
            fault={faultOf('host_name')}
            value={name}
            onValue={setName}
          />
          <SelectField
            label={text.kind}
            choices={Object.entries(kindName).map(([value, label]) => ({ value, label }))}
            fault={faultOf('kind')}
            value={kind}
            onValue={(next) => setKind(next as HostKind)}
          />
          {fields[kind].map(({ name: field, label, required, secret }) => {
            const shared = {
              label: required ? label : `${label} (${text.optional})`,
              fault: faultOf(field),
              spellcheck: false,
              autocomplete: secret ? 'new-password' : 'off',
              ...(required && { required }),
              value: values[field] ?? '',
              onValue: (value: string) => setValues({ ...values, [field]: value }),
            }
            if (field === 'private_key')
              return <TextArea key={field} {...shared} rows={4} autocomplete="off" />
            return (
              <TextField
                key={field}
                {...shared}
                type={secret ? 'password' : 'text'}
                placeholder={field === 'url' ? DEFAULT_URL[kind] : ''}
              />
            )
          })}
        </>
      )}
    </FormDialog>
  )
}
