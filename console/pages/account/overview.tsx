/** The tab about the signed-in person: the sign-in method, and the permissions in each project. */
import { useState } from 'preact/hooks'
import type { ConsoleIdentity } from '../../../protocol/access/console-session.ts'
import { Button } from '../../design/button.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { TextField } from '../../design/field.tsx'
import { Empty } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { identity, signIn, signOut } from '../../shell/session.ts'
import { accountText as text } from './text.ts'

type Project = NonNullable<ConsoleIdentity['projects']>[number]

const columns: readonly Column<Project>[] = [
  {
    name: text.project,
    cell: ({ name, handle }) => (
      <a class="user-text" href={`/p/${encodeURIComponent(handle)}`}>
        {name}
      </a>
    ),
  },
  {
    name: text.actsAs,
    cell: ({ principal: { name, kind, id } }) => (
      <>
        <span class="user-text">{name}</span> <span class="soft">({kind})</span>
        <div class="small soft mono user-text">{id}</div>
      </>
    ),
  },
  {
    name: text.permissions,
    cell: ({ permissions }) => (
      <span class="small mono user-text permission-list">{[...permissions].sort().join(', ')}</span>
    ),
  },
]

function AddCredential({ onClose }: { readonly onClose: () => void }) {
  const [credential, setCredential] = useState('')
  return (
    <FormDialog
      title={text.addCredential}
      action={text.addCredential}
      onSubmit={async () => {
        await signIn({ credential: credential.trim() })
        onClose()
      }}
      onClose={onClose}
    >
      {(faultOf) => (
        <TextField
          label={text.credential}
          type="password"
          autocomplete="off"
          required
          hint={text.addCredentialHint}
          fault={faultOf('credential')}
          value={credential}
          onValue={setCredential}
        />
      )}
    </FormDialog>
  )
}

/** Shows the current session, the organization role, and the projects with their permissions. */
export function Overview() {
  const [adding, setAdding] = useState(false)
  const known = identity.value
  if (!known?.session) return null
  const { display_name, session, organization, projects = [], more_projects, ways } = known
  return (
    <div class="stack">
      <div class="card">
        <div class="body stack">
          <dl class="facts">
            <dt>{text.name}</dt>
            <dd class="user-text">{display_name}</dd>
            <dt>{text.method}</dt>
            <dd>{text[session.method]}</dd>
            <dt>{text.since}</dt>
            <dd>
              <Time at={session.created_at} />
            </dd>
            <dt>{text.ends}</dt>
            <dd>
              <Time at={session.expires_at} /> <span class="soft">{text.endsHint}</span>
            </dd>
            {organization && (
              <>
                <dt>{text.organization}</dt>
                <dd class="user-text">
                  {organization.principal.name}{' '}
                  <span class="soft">{text.organizationRole(organization.role)}</span>
                </dd>
              </>
            )}
          </dl>
          <div class="row">
            {ways.credential && session.method !== 'oidc' && (
              <Button icon="keys" onClick={() => setAdding(true)}>
                {text.addCredential}
              </Button>
            )}
            <Button onClick={signOut}>{text.signOut}</Button>
          </div>
        </div>
      </div>
      <h2>{text.projects}</h2>
      {projects.length === 0 ? (
        <Empty icon="blueprints" title={text.noProjects} />
      ) : (
        <DataTable
          label={text.projects}
          columns={columns}
          items={projects}
          keyOf={({ id }) => id}
        />
      )}
      {more_projects && <p class="soft">{text.moreProjects}</p>}
      {adding && <AddCredential onClose={() => setAdding(false)} />}
    </div>
  )
}
