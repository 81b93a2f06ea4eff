/** The tab with the roles of a project, their permissions and their assignments. */
import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Icon } from '../../design/icons.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Show } from '../../design/states.tsx'
import { currentUrl, setQuery } from '../../router/router.ts'
import { may } from '../../shell/session.ts'
import { Assignments } from './assignments.tsx'
import { allowsPermission, isAction } from './permissions.ts'
import { RoleForm } from './role-form.tsx'
import { type Role, useRoles } from './roles-of.ts'
import { accessText as text } from './text.ts'

type Permission = CallReply<'permission.list'>['items'][number]

const Mark = ({ on }: { readonly on: boolean }) =>
  on ? (
    <span class="mark">
      <Icon name="check" />
      <span class="unseen">{text.allowed}</span>
    </span>
  ) : (
    <span class="soft">
      <span aria-hidden="true">·</span>
      <span class="unseen">{text.notAllowed}</span>
    </span>
  )

/** A table with a row for each permission and a column for each role. */
function Matrix({
  roles,
  catalog,
  onEdit,
  onDelete,
}: {
  readonly roles: readonly Role[]
  readonly catalog: readonly Permission[]
  readonly onEdit: (role: Role) => void
  readonly onDelete: (role: Role) => void
}) {
  const items = catalog.filter(({ assignable }) => assignable)
  const single = (role: Role) =>
    role.permissions.filter((one) => isAction(one) && !items.some(({ id }) => id === one))
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be focusable
    <section class="table-frame" aria-label={text.matrix} tabIndex={0}>
      <table class="table matrix">
        <thead>
          <tr>
            <th scope="col">{text.permission}</th>
            {roles.map((role) => (
              <th key={role.id} scope="col">
                <span class="user-text" title={role.description}>
                  {role.name}
                </span>
                {!role.system_defined && may('project.admin') && (
                  <Menu
                    label={text.actionsOf(role.name)}
                    items={[
                      { label: text.editRole, icon: 'edit', onSelect: () => onEdit(role) },
                      {
                        label: text.deleteRole,
                        icon: 'trash',
                        danger: true,
                        onSelect: () => onDelete(role),
                      },
                    ]}
                  />
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(({ id, label, description, risk }) => (
            <tr key={id}>
              <th scope="row">
                <span class="name">{label}</span>{' '}
                {(risk === 'high' || risk === 'critical') && (
                  <Badge tone="warn">{text.risk(risk)}</Badge>
                )}
                <div class="small soft">{description}</div>
              </th>
              {roles.map((role) => (
                <td key={role.id}>
                  <Mark on={allowsPermission(role.permissions, id)} />
                </td>
              ))}
            </tr>
          ))}
          {roles.some((role) => single(role).length > 0) && (
            <tr>
              <th scope="row">
                <span class="name">{text.actionPermissions}</span>
              </th>
              {roles.map((role) => (
                <td key={role.id} class="small mono user-text">
                  {single(role).map((one) => (
                    <div key={one}>{one.slice('actions.execute.'.length)}</div>
                  ))}
                </td>
              ))}
            </tr>
          )}
        </tbody>
      </table>
    </section>
  )
}

/** Shows the permissions of all roles, and the role assignments. */
export function Roles({ project }: { readonly project: string }) {
  const roles = useRoles(project)
  const { state, reload } = useQuery('permission.list', { project })
  const assignments =
    useQuery('assignment.list', { project }, { kinds: ['assignment', 'principal', 'role'] }).state
      .value.data?.items ?? []
  const [editing, setEditing] = useState<Role>()
  const [deleting, setDeleting] = useState<Role>()
  const mayCreate = may('project.admin')
  const isNew = mayCreate && currentUrl.value.query.get('new') !== null
  return (
    <Show of={state.value} retry={reload} lines={8}>
      {({ items: catalog }) => (
        <div class="stack">
          <div class="row apart">
            <h2>{text.matrix}</h2>
            {mayCreate && (
              <Button
                kind="primary"
                icon="plus"
                onClick={() => setQuery({ new: '1' }, { push: true })}
              >
                {text.newRole}
              </Button>
            )}
          </div>
          <Matrix roles={roles} catalog={catalog} onEdit={setEditing} onDelete={setDeleting} />
          <Assignments project={project} items={assignments} roles={roles} />
          {(isNew || editing) && (
            <RoleForm
              project={project}
              catalog={catalog}
              {...(editing && { of: editing })}
              onClose={() => {
                setEditing(undefined)
                setQuery({ new: undefined })
              }}
            />
          )}
          {deleting && (
            <Confirm
              title={text.deleteRoleTitle(deleting.name)}
              action={text.deleteRole}
              danger
              onClose={() => setDeleting(undefined)}
              onConfirm={async () => {
                await call('role.delete', { project, id: deleting.id })
                showDone(text.removed)
              }}
            >
              <p>
                {text.deleteRoleHint(
                  assignments.filter(({ role_id }) => role_id === deleting.id).length,
                )}
              </p>
            </Confirm>
          )}
        </div>
      )}
    </Show>
  )
}
