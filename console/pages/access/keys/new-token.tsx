/** The dialog that creates a personal token, for oneself or for another person. */
import { useState } from 'preact/hooks'
import type { CallReply } from '../../../api/client.ts'
import { TextField } from '../../../design/field.tsx'
import { FormDialog } from '../../../form/dialog.tsx'
import { accessText as text } from '../text.ts'
import { ExpiryField, expiryOf, usualExpiry } from './expiry.tsx'

/** A created token, with its value. */
export type CreatedToken = CallReply<'me.create_token'>

/** The content of the request for a token. */
export interface TokenRequest {
  readonly name: string
  /** RFC 3339; absent for a token that never expires. */
  readonly expires_at?: string
}

/** Shows the dialog. `create` sends the request, and `onClose` receives its result. */
export function NewToken({
  create,
  onClose,
}: {
  readonly create: (request: TokenRequest) => Promise<CreatedToken>
  readonly onClose: (created?: CreatedToken) => void
}) {
  const [name, setName] = useState('')
  const [days, setDays] = useState(usualExpiry)
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
          <ExpiryField value={days} faultOf={faultOf} onValue={setDays} />
        </>
      )}
    </FormDialog>
  )
}
