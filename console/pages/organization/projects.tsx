/** The projects of the organization. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useList } from '../../api/query.ts'
import { useRefusal } from '../../api/refusal.ts'
import { Button } from '../../design/button.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Dialog, DialogActions } from '../../design/overlay.tsx'
import { Empty, Failure, Skeleton } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { Page } from '../../shell/page.tsx'
import { loadSession, mayInOrganization } from '../../shell/session.ts'
import { organizationText as text } from './text.ts'

type Project = CallReply<'project.list'>['items'][number]

const columns: readonly Column<Project>[] = [
  {
    name: text.name,
    cell: ({ name, handle }) => (
      <a class="user-text" href={`/p/${encodeURIComponent(handle)}`}>
        {name}
      </a>
    ),
  },
  { name: text.handle, cell: ({ handle }) => <span class="mono">{handle}</span> },
  { name: text.access, cell: ({ access_mode }) => access_mode },
  { name: text.createdAt, cell: ({ created_at }) => <Time at={created_at} /> },
]

function NewProject({ onClose }: { readonly onClose: (created: boolean) => void }) {
  const [name, setName] = useState('')
  const [handle, setHandle] = useState('')
  const { attempt, errorBeside, faultOf } = useRefusal()
  const submit = async (): Promise<void> => {
    await attempt(async () => {
      await call('project.create', { name, ...(handle !== '' && { handle }) })
      await loadSession()
      showDone(text.created)
      onClose(true)
    })
  }
  const remaining = errorBeside('name', 'handle')
  return (
    <Dialog title={text.newProject} onClose={() => onClose(false)}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {remaining && <Failure error={remaining} />}
        <TextField
          label={text.name}
          required
          maxLength={160}
          fault={faultOf('name')}
          value={name}
          onValue={setName}
        />
        <TextField
          label={text.handle}
          hint={text.handleHint}
          fault={faultOf('handle')}
          value={handle}
          onValue={setHandle}
        />
        <DialogActions onClose={() => onClose(false)} action={text.create} submit />
      </form>
    </Dialog>
  )
}

export default function ProjectsPage() {
  const { state, more, reload } = useList('project.list', { limit: 100 })
  const { items, loading, error, more: hasMore } = state.value
  const mayCreate = mayInOrganization('organization.admin')
  const isNew = mayCreate && currentUrl.value.query.get('new') !== null
  return (
    <Page
      title={text.projects}
      actions={
        mayCreate && (
          <Button kind="primary" icon="plus" onClick={() => setQuery({ new: '1' }, { push: true })}>
            {text.newProject}
          </Button>
        )
      }
    >
      {error && <Failure error={error} retry={reload} />}
      {items.length === 0 ? (
        loading ? (
          <Skeleton />
        ) : (
          <Empty icon="blueprints" title={text.noProjects} />
        )
      ) : (
        <DataTable label={text.projects} columns={columns} items={items} keyOf={({ id }) => id} />
      )}
      {hasMore && <Button onClick={more}>…</Button>}
      {isNew && (
        <NewProject
          onClose={(created) => {
            setQuery({ new: undefined })
            if (created) reload()
          }}
        />
      )}
    </Page>
  )
}
