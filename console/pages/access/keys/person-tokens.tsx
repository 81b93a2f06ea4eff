/** A dialog with the personal tokens of one person, whose id is in the URL. */
import { call } from '../../../api/client.ts'
import { useList, useQuery } from '../../../api/query.ts'
import { Listed } from '../../../design/listed.tsx'
import { Dialog } from '../../../design/overlay.tsx'
import { Empty } from '../../../design/states.tsx'
import { accessText as text } from '../text.ts'
import { AddToken } from './add-token.tsx'
import { KeyTable } from './key-table.tsx'

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
        <AddToken
          project={project}
          create={(request) => call('token.create', { project, id, ...request })}
          onCreated={list.reload}
        />
      </div>
    </Dialog>
  )
}
