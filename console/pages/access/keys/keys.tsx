/** The tab with the API keys of a project. */
import { useState } from 'preact/hooks'
import { call } from '../../../api/client.ts'
import { useList, useQuery } from '../../../api/query.ts'
import { Button } from '../../../design/button.tsx'
import { Listed } from '../../../design/listed.tsx'
import { Empty } from '../../../design/states.tsx'
import { currentUrl, setQuery } from '../../../router/router.ts'
import { useRoles } from '../roles-of.ts'
import { accessText as text } from '../text.ts'
import { KeyTable } from './key-table.tsx'
import { type CreatedKey, NewKey } from './new-key.tsx'
import { ShownOnce, whoAmI } from './shown-once.tsx'

/** Lists the keys. The query parameter `new` opens the dialog that creates one. */
export function Keys({ project }: { readonly project: string }) {
  const list = useList('key.list', { project, limit: 100 }, { kinds: ['key'] })
  const roles = useRoles(project)
  const principals = useQuery(
    'principal.list',
    { project, include_disabled: true, limit: 200 },
    { kinds: ['principal'] },
  ).state.value.data?.items
  const [created, setCreated] = useState<CreatedKey>()
  const isNew = currentUrl.value.query.get('new') !== null
  const nameOf = (id: string) => principals?.find((one) => one.id === id)?.name ?? id
  const roleName = (id: string) => roles.find((role) => role.id === id)?.name ?? id
  const create = (
    <Button kind="primary" icon="plus" onClick={() => setQuery({ new: '1' }, { push: true })}>
      {text.newKey}
    </Button>
  )
  return (
    <div class="stack">
      <div class="row end">{create}</div>
      <Listed
        of={list}
        empty={
          <Empty icon="keys" title={text.noKeys}>
            <p>{text.noKeysHint}</p>
          </Empty>
        }
      >
        {(items) => (
          <KeyTable
            label={text.keys}
            items={items}
            further={[
              {
                name: text.principal,
                cell: ({ principal_id }) => (
                  <span class="user-text" title={principal_id}>
                    {nameOf(principal_id)}
                  </span>
                ),
              },
              {
                name: text.scopeLimit,
                cell: ({ scope_role_id: id }) =>
                  id ? (
                    <span class="user-text">{roleName(id)}</span>
                  ) : (
                    <span class="soft">{text.noLimit}</span>
                  ),
              },
            ]}
            revoke={async ({ id }) => {
              await call('key.revoke', { project, id })
              list.reload()
            }}
          />
        )}
      </Listed>
      {isNew && (
        <NewKey
          project={project}
          onClose={(key) => {
            setQuery({ new: undefined })
            setCreated(key)
            if (key) list.reload()
          }}
        />
      )}
      {created && (
        <ShownOnce
          title={text.keyCreated}
          value={created.key}
          example={whoAmI(project, created.key)}
          onClose={() => setCreated(undefined)}
        />
      )}
    </div>
  )
}
