/** A dialog with the personal tokens of one person, whose id is in the URL. */
import { useState } from 'preact/hooks'
import { call } from '../../../api/client.ts'
import { useList, useQuery } from '../../../api/query.ts'
import { Button } from '../../../design/button.tsx'
import { Listed } from '../../../design/listed.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { Empty } from '../../../design/states.tsx'
import { accessText as text } from '../text.ts'
import { KeyTable } from './key-table.tsx'
import { type CreatedToken, NewToken } from './new-token.tsx'
import { ShownOnce, whoAmI } from './shown-once.tsx'

/** Lists, creates and revokes the tokens of the person `id`. */
export function PersonTokens({
  project,
  id,
  onClose,
}: {
  readonly project: string
  readonly id: string
  readonly onClose: () => void
}) {
  const person = useQuery('user.get', { project, id }, { kinds: ['principal'] }).state.value.data
  const list = useList('token.list', { project, id, limit: 100 }, { kinds: ['key'] })
  const [adding, setAdding] = useState(false)
  const [created, setCreated] = useState<CreatedToken>()
  return (
    <Dialog title={text.tokensOf(person?.name ?? id)} wide onClose={onClose}>
      <Listed of={list} empty={<Empty icon="keys" title={text.noTokens} />}>
        {(items) => (
          <KeyTable
            label={text.tokens}
            items={items}
            revoke={async ({ id: token }) => {
              await call('token.revoke', { project, id, token })
              list.reload()
            }}
          />
        )}
      </Listed>
      <div class="actions">
        <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
          {text.newToken}
        </Button>
      </div>
      {adding && (
        <NewToken
          create={(body) => call('token.create', { project, id, ...body })}
          onClose={(token) => {
            setAdding(false)
            setCreated(token)
            if (token) list.reload()
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
    </Dialog>
  )
}
