/** The dialog that defines an action of the project. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { Button } from '../../design/button.tsx'
import { Code } from '../../design/copy.tsx'
import { SelectField, TextField } from '../../design/field.tsx'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { useFaults } from '../../form/faults.ts'
import { faultAt } from '../../form/value.ts'
import { go } from '../../router/router.ts'
import { buildText } from '../build/text.ts'
import { actionsText as text } from './text.ts'

/** Shows a new signing secret, which the service does not return again. */
export const SecretDialog = ({
  secret,
  onClose,
}: {
  readonly secret: string
  readonly onClose: () => void
}) => (
  <Dialog title={text.newSecret} onClose={onClose}>
    <p>{text.shownOnce}</p>
    <Code>{secret}</Code>
    <div class="actions">
      <Button kind="primary" onClick={onClose}>
        {text.done}
      </Button>
    </div>
  </Dialog>
)

/**
 * Shows the dialog. After the action has been created, shows its secret, if it has one, and then
 * opens the page of the action.
 */
export function CreateDialog({
  project,
  onClose,
}: {
  readonly project: string
  readonly onClose: () => void
}) {
  const [name, setName] = useState('')
  const [kind, setKind] = useState<'http' | 'worker'>('http')
  const [url, setUrl] = useState('')
  const { faults, attempt } = useFaults()
  const [secret, setSecret] = useState<string>()
  const open = (): void =>
    go(
      `/p/${encodeURIComponent(project)}/actions/${encodeURIComponent(name.trim())}?tab=settings`,
      {
        replace: true,
      },
    )
  const create = async (): Promise<void> => {
    await attempt(async () => {
      const made = await call('action.create', {
        project,
        name: name.trim(),
        endpoint_kind: kind,
        ...(kind === 'http' && {
          endpoint_url: url.trim(),
          invocation_format: 'signed_context_v1' as const,
        }),
      })
      if (made.signing_secret === undefined) open()
      else setSecret(made.signing_secret)
    })
  }
  if (secret !== undefined) return <SecretDialog secret={secret} onClose={open} />
  return (
    <Dialog title={text.create} onClose={onClose}>
      <form class="stack" noValidate onSubmit={(event) => event.preventDefault()}>
        <TextField
          label={text.name}
          hint={text.nameHint}
          value={name}
          required
          autocomplete="off"
          fault={faultAt(faults, 'name')}
          onValue={setName}
        />
        <SelectField
          label={text.kind}
          value={kind}
          choices={[
            { value: 'http', label: text.http },
            { value: 'worker', label: text.worker },
          ]}
          onValue={(next) => setKind(next === 'worker' ? 'worker' : 'http')}
        />
        {kind === 'http' && (
          <TextField
            label={text.endpoint}
            hint={text.endpointHint}
            type="url"
            value={url}
            required
            placeholder="https://"
            fault={faultAt(faults, 'endpoint_url')}
            onValue={setUrl}
          />
        )}
        <DialogActions
          onClose={onClose}
          action={buildText.create}
          submit
          disabled={name.trim() === ''}
          onClick={create}
        />
      </form>
    </Dialog>
  )
}
