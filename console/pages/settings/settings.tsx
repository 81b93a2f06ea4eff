/** The settings of a project: general settings, limits, repository hosts, and deletion. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Notice, Show } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { UntouchedForm } from '../../form/untouched.tsx'
import { go } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { loadSession, mayInOrganization } from '../../shell/session.ts'
import { General } from './general.tsx'
import { Hosts } from './hosts.tsx'
import { Storage } from './storage.tsx'
import { settingsText as text } from './text.ts'

type Project = CallReply<'project.get'>

function DeleteDialog({ of, onClose }: { readonly of: Project; readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  return (
    <FormDialog
      title={text.deleteTitle}
      action={text.deleteButton}
      danger
      disabled={typed !== of.name}
      onSubmit={async () => {
        await call('project.delete', { project: of.id })
        showDone(text.deleted)
        await loadSession()
        go('/organization/projects', { replace: true })
      }}
      onClose={onClose}
    >
      {() => (
        <>
          <p>{text.deleteHint}</p>
          <TextField
            label={text.deleteConfirm(of.name)}
            autocomplete="off"
            spellcheck={false}
            value={typed}
            onValue={setTyped}
          />
        </>
      )}
    </FormDialog>
  )
}

function Danger({ of }: { readonly of: Project }) {
  const [asking, setAsking] = useState(false)
  return (
    <div class="stack narrow">
      <h2>{text.deleteTitle}</h2>
      <p>{text.deleteHint}</p>
      {mayInOrganization('organization.admin') ? (
        <div>
          <Button danger icon="trash" onClick={() => setAsking(true)}>
            {text.deleteButton}
          </Button>
        </div>
      ) : (
        <Notice>{text.deleteNeeds}</Notice>
      )}
      {asking && <DeleteDialog of={of} onClose={() => setAsking(false)} />}
    </div>
  )
}

export default function SettingsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const { state, reload } = useQuery('project.get', { project })
  return (
    <Page title={text.title} actions={<CopyCall name="project.get" input={{ project }} />}>
      <Show of={state.value} retry={reload} lines={8}>
        {(of) => (
          <Tabs
            label={text.title}
            tabs={[
              {
                id: 'general',
                label: text.general,
                content: () => (
                  <UntouchedForm record={of}>
                    {(one, onSettled) => (
                      <General of={one} project={project} onSaved={reload} onSettled={onSettled} />
                    )}
                  </UntouchedForm>
                ),
              },
              { id: 'hosts', label: text.hosts, content: () => <Hosts project={project} /> },
              { id: 'storage', label: text.storage, content: () => <Storage project={project} /> },
              { id: 'delete', label: text.danger, content: () => <Danger of={of} /> },
            ]}
          />
        )}
      </Show>
    </Page>
  )
}
