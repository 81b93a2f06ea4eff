/** A button for creating a personal token, with the dialogs that it opens. */
import { useState } from 'preact/hooks'
import { Button } from '../../../design/button.tsx'
import { accessText as text } from '../text.ts'
import { type CreatedToken, NewToken, type TokenRequest } from './new-token.tsx'
import { ShownOnce, whoAmI } from './shown-once.tsx'

/** Shows the button. `create` sends the request, and `onCreated` is called after a success. */
export function AddToken({
  project,
  create,
  onCreated,
}: {
  readonly project: string
  readonly create: (request: TokenRequest) => Promise<CreatedToken>
  readonly onCreated: () => void
}) {
  const [adding, setAdding] = useState(false)
  const [created, setCreated] = useState<CreatedToken>()
  return (
    <>
      <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
        {text.newToken}
      </Button>
      {adding && (
        <NewToken
          create={create}
          onClose={(token) => {
            setAdding(false)
            setCreated(token)
            if (token) onCreated()
          }}
        />
      )}
      {created && (
        <ShownOnce
          title={text.tokenCreated}
          value={created.key}
          example={whoAmI(project, created.key)}
          onClose={() => setCreated(undefined)}
        />
      )}
    </>
  )
}
