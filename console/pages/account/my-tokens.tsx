/** The tab with the signed-in person's personal tokens in one project. */
import { call } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { SelectField } from '../../design/field.tsx'
import { Listed } from '../../design/listed.tsx'
import { Empty, Notice } from '../../design/states.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { projects } from '../../shell/session.ts'
import { AddToken } from '../access/keys/add-token.tsx'
import { KeyTable } from '../access/keys/key-table.tsx'
import { accountText as text } from './text.ts'

function Tokens({ project }: { readonly project: string }) {
  const list = useList('me.list_tokens', { project, limit: 100 }, { kinds: ['key'] })
  return (
    <>
      <Listed of={list} empty={<Empty icon="keys" title={text.noTokens} />}>
        {(items) => (
          <KeyTable
            label={text.tokens}
            items={items}
            revoke={async ({ id: token }) => {
              await call('me.revoke_token', { project, token })
              list.reload()
            }}
          />
        )}
      </Listed>
      <div>
        <AddToken
          project={project}
          create={(request) => call('me.create_token', { project, ...request })}
          onCreated={list.reload}
        />
      </div>
    </>
  )
}

/**
 * Shows the tokens in the project that the query parameter `project` selects. By default, this is
 * the first project in which the caller's principal is a person. If the caller is not a person in
 * any project, it is the first project.
 */
export function MyTokens() {
  const all = projects.value
  const wanted = currentUrl.value.query.get('project')
  const chosen =
    all.find(({ handle }) => handle === wanted) ??
    all.find(({ principal }) => principal.kind === 'user') ??
    all[0]
  if (!chosen) return <Empty icon="keys" title={text.noProjects} />
  return (
    <div class="stack">
      <p class="soft">{text.tokensHint}</p>
      <SelectField
        label={text.chooseProject}
        choices={all.map(({ handle, name }) => ({ value: handle, label: name }))}
        value={chosen.handle}
        onValue={(handle) => setQuery({ project: handle })}
      />
      {chosen.principal.kind === 'user' ? (
        <Tokens key={chosen.id} project={chosen.handle} />
      ) : (
        <Notice>{text.tokensOnly}</Notice>
      )}
    </div>
  )
}
