/** The repository hosts of a project. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Empty, Show } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import { may } from '../../shell/session.ts'
import { HostForm, kindName } from './host-form.tsx'
import { settingsText as text } from './text.ts'

type Host = CallReply<'repository_host.list'>['items'][number]

/** Lists the repository hosts, and lets administrators add, replace and remove them. */
export function Hosts({ project }: { readonly project: string }) {
  const { state, reload } = useQuery(
    'repository_host.list',
    { project },
    { kinds: ['repository_host'] },
  )
  const [editing, setEditing] = useState<Host | 'new'>()
  const [removing, setRemoving] = useState<Host>()
  const mayChange = may('project.admin')
  const columns: readonly Column<Host>[] = [
    {
      name: text.hostName,
      cell: ({ name, url }) => (
        <>
          <strong class="user-text">{name}</strong>
          <div class="small soft mono user-text">{url}</div>
        </>
      ),
    },
    { name: text.kind, cell: ({ kind }) => kindName[kind] },
    {
      name: text.secrets,
      cell: ({ secrets }) => <span class="mono user-text">{secrets.join(', ')}</span>,
    },
    { name: text.changed, cell: ({ updated_at }) => <Time at={updated_at} /> },
    ...(mayChange
      ? [
          {
            name: text.actions,
            cell: (host: Host) => (
              <Menu
                label={text.actionsOf(host.name)}
                items={[
                  { label: text.replace, icon: 'edit', onSelect: () => setEditing(host) },
                  {
                    label: text.remove,
                    icon: 'trash',
                    danger: true,
                    onSelect: () => setRemoving(host),
                  },
                ]}
              />
            ),
          },
        ]
      : []),
  ]
  return (
    <div class="stack">
      <div class="row apart">
        <p class="soft">{text.hostsHint}</p>
        {mayChange && (
          <Button kind="primary" icon="plus" onClick={() => setEditing('new')}>
            {text.newHost}
          </Button>
        )}
      </div>
      <Show of={state.value} retry={reload}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="workflows" title={text.noHosts}>
              <p>{text.noHostsHint}</p>
            </Empty>
          ) : (
            <DataTable
              label={text.hosts}
              columns={columns}
              items={items}
              keyOf={({ name }) => name}
            />
          )
        }
      </Show>
      {editing && (
        <HostForm
          project={project}
          {...(editing !== 'new' && { of: editing })}
          onClose={(saved) => {
            setEditing(undefined)
            if (saved) reload()
          }}
        />
      )}
      {removing && (
        <Confirm
          title={text.removeHost(removing.name)}
          action={text.remove}
          danger
          onClose={() => setRemoving(undefined)}
          onConfirm={async () => {
            await call('repository_host.delete', { project, host_name: removing.name })
            showDone(text.hostRemoved)
            reload()
          }}
        >
          <p>{text.removeHostHint}</p>
        </Confirm>
      )}
    </div>
  )
}
