/** One blueprint: its resources, its drift, its protection and its deletion. */
import { useState } from 'preact/hooks'
import type { Binding } from '../../../protocol/blueprints/schema.ts'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { CopyCall } from '../../design/copy.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { Checkbox, TextField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Empty, Notice, Show } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { currentUrl, go } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { bindingKinds } from './binding-kinds.ts'
import { Protection } from './blueprints.tsx'
import { Drift } from './drift.tsx'
import { exportFile } from './export-file.ts'
import { type Group, protectionOf } from './groups.ts'
import { blueprintsText as text } from './text.ts'

const columns: readonly Column<Binding>[] = [
  { name: text.key, cell: ({ key }) => <strong class="user-text">{key}</strong> },
  { name: text.type, cell: ({ resource_type }) => resource_type },
  { name: text.id, cell: ({ resource_id }) => <span class="mono">{resource_id}</span> },
  { name: text.version, cell: (one) => <span class="user-text">{one.blueprint_version}</span> },
  {
    name: text.origin,
    cell: ({ delete_on_destroy }) => (delete_on_destroy ? text.owned : text.adopted),
  },
  {
    name: text.protection,
    cell: (one) =>
      one.protected ? <Badge tone="good">{text.protected}</Badge> : <Badge>{text.open}</Badge>,
  },
]

function DeleteDialog({
  project,
  of: { namespace, key, bindings },
  onClose,
}: {
  readonly project: string
  readonly of: Group
  readonly onClose: () => void
}) {
  const [typed, setTyped] = useState('')
  const [retained, setRetained] = useState(false)
  const own = bindings.filter(({ delete_on_destroy }) => delete_on_destroy).length
  return (
    <FormDialog
      title={text.removeTitle(key)}
      action={text.remove}
      danger
      disabled={typed !== key}
      onSubmit={async () => {
        const { deleted } = await call('blueprint.delete', {
          project,
          blueprint_key: key,
          ...(namespace !== '' && { namespace }),
          ...(retained && { delete_retained: true }),
          include: ['further_types'],
        })
        showDone(text.removed(deleted.length))
        go(`/p/${encodeURIComponent(project)}/blueprints`, { replace: true })
      }}
      onClose={onClose}
    >
      {() => (
        <>
          <p>{text.removeHint(own, bindings.length - own)}</p>
          {own < bindings.length && (
            <Checkbox label={text.removeRetained} checked={retained} onChecked={setRetained} />
          )}
          <TextField
            label={text.removeConfirm(key)}
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

export default function BlueprintPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const { query } = currentUrl.value
  const namespace = query.get('namespace') ?? ''
  const key = query.get('key') ?? ''
  const input = {
    project,
    include: ['further_types' as const],
    ...(namespace !== '' && { namespace }),
    ...(key !== '' && { blueprint_key: key }),
  }
  const { state, reload } = useQuery('blueprint.bindings', input, { kinds: bindingKinds })
  const [asked, setAsked] = useState<'protect' | 'delete'>()
  // Without a namespace or key, the service lists the bindings of all blueprints, so the bindings
  // of other blueprints are filtered out here.
  const bindings = state.value.data?.items.filter(
    (one) => (one.namespace ?? '') === namespace && (one.blueprint_key ?? '') === key,
  )
  const group: Group = { namespace, key, bindings: bindings ?? [] }
  const isProtected = protectionOf(group.bindings) === 'all'
  const mayChange = may('project.admin') && key !== '' && group.bindings.length > 0
  return (
    <Page
      title={key || text.unnamed}
      crumbs={[{ label: text.back, href: `/p/${encodeURIComponent(project)}/blueprints` }]}
      actions={
        <>
          <CopyCall name="blueprint.bindings" input={input} />
          {mayChange && (
            <Menu
              label={text.title}
              items={[
                {
                  label: text.remove,
                  icon: 'trash',
                  danger: true,
                  onSelect: () => setAsked('delete'),
                },
              ]}
            />
          )}
          <Button icon="download" onClick={() => exportFile(project, group)}>
            {text.export}
          </Button>
          {mayChange && (
            <Button onClick={() => setAsked('protect')}>
              {isProtected ? text.unprotect : text.protect}
            </Button>
          )}
        </>
      }
    >
      <Show of={state.value} retry={reload}>
        {() =>
          group.bindings.length === 0 ? (
            <Empty icon="blueprints" title={text.notFound}>
              <p>{text.notFoundHint}</p>
            </Empty>
          ) : (
            <>
              <div class="row">
                {namespace !== '' && <Badge>{namespace}</Badge>}
                <span class="soft">{text.countOf(group.bindings.length)}</span>
                <Protection of={group} />
              </div>
              {key === '' ? (
                <>
                  <Notice>{text.needsKey}</Notice>
                  <DataTable
                    label={text.resources}
                    columns={columns}
                    items={group.bindings}
                    keyOf={({ resource_id }) => resource_id}
                  />
                </>
              ) : (
                <Tabs
                  label={text.title}
                  tabs={[
                    {
                      id: 'resources',
                      label: text.resources,
                      content: () => (
                        <DataTable
                          label={text.resources}
                          columns={columns}
                          items={group.bindings}
                          keyOf={({ resource_id }) => resource_id}
                        />
                      ),
                    },
                    {
                      id: 'drift',
                      label: text.drift,
                      content: () => (
                        <Drift project={project} namespace={namespace} blueprint={key} />
                      ),
                    },
                  ]}
                />
              )}
            </>
          )
        }
      </Show>
      {asked === 'protect' && (
        <Confirm
          title={isProtected ? text.unprotectTitle : text.protectTitle}
          action={isProtected ? text.unprotect : text.protect}
          onClose={() => setAsked(undefined)}
          onConfirm={async () => {
            await call('blueprint.protect', {
              project,
              blueprint_key: key,
              ...(namespace !== '' && { namespace }),
              protected: !isProtected,
              include: ['further_types'],
            })
            showDone(text.protectionSet)
            reload()
          }}
        >
          <p>{isProtected ? text.unprotectHint : text.protectHint}</p>
        </Confirm>
      )}
      {asked === 'delete' && (
        <DeleteDialog project={project} of={group} onClose={() => setAsked(undefined)} />
      )}
    </Page>
  )
}
