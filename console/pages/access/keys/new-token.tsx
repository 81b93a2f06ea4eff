/** The dialog that creates a personal token, for oneself or for another person. */
import { useState } from 'preact/hooks'
import type { CallReply } from '../../../api/client.ts'
import { SelectField, TextField } from '../../../design/field.tsx'
import { FormDialog } from '../../../form/dialog.tsx'
import { accessText as text } from '../text.ts'
import { expiryChoices, expiryOf } from './expiry.ts'

/** A created token, with its value. */
export type CreatedToken = CallReply<'me.create_token'>

/** Shows the dialog. `create` sends the request, and `onClose` receives its result. */
export function NewToken({
  create,
  onClose,
}: {
  readonly create: (body: {
    readonly name: string
    readonly expires_at?: string
  }) => Promise<CreatedToken>
  readonly onClose: (created?: CreatedToken) => void
}) {
  const [name, setName] = useState('')
  const [days, setDays] = useState<string>(expiryChoices[0].value)
  return (
    <FormDialog
      title={text.newToken}
      action={text.create}
      onSubmit={async () => onClose(await create({ name, ...expiryOf(days, Date.now()) }))}
      onClose={() => onClose()}
    >
      {(faultOf) => (
        <>
          <p class="soft">{text.createTokenHint}</p>
          <TextField
            label={text.name}
            required
            maxLength={128}
            fault={faultOf('name')}
            value={name}
            onValue={setName}
          />
          <SelectField
            label={text.expires}
            choices={expiryChoices}
            fault={faultOf('expires_at')}
            value={days}
            onValue={setDays}
          />
        </>
      )}
    </FormDialog>
  )
}
