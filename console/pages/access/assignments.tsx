/** The list of the role assignments of a project, with the dialogs that add and revoke them. */

import { useState } from 'preact/hooks'
import { type CallReply, call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { type Column, DataTable } from '../../design/data-table.tsx'
import { SelectField } from '../../design/field.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm } from '../../design/overlay.tsx'
import { Empty } from '../../design/states.tsx'
import { designText } from '../../design/text.ts'
import { Time } from '../../design/time.tsx'
import { FormDialog } from '../../form/dialog.tsx'
import { may } from '../../shell/session.ts'
import type { Role } from './roles-of.ts'
import { accessText as text } from './text.ts'

type Assignment = CallReply<'assignment.list'>['items'][number]
type Principal = CallReply<'principal.list'>['items'][number]

function GiveRole({
  project,
  roles,
  principals,
  onClose,
}: {
  readonly project: string
  readonly roles: readonly Role[]
  readonly principals: readonly Principal[]
  readonly onClose: () => void
}) {
  const candidates = principals.filter(({ state, kind }) => state === 'active' && kind !== 'system')
  const [principal_id, setPrincipal] = useState(candidates[0]?.id ?? '')
  const [role_id, setRole] = useState(roles[0]?.id ?? '')
  return (
    <FormDialog
      title={text.giveRole}
      action={text.give}
      disabled={principal_id === '' || role_id === ''}
      onSubmit={async () => {
        await call('assignment.create', { project, principal_id, role_id })
        showDone(text.given)
        onClose()
      }}
      onClose={onClose}
    >
      {(faultOf) => (
        <>
          <SelectField
            label={text.name}
            choices={candidates.map(({ id, name, kind }) => ({
              value: id,
              label: designText.detailed(name, kind),
            }))}
            fault={faultOf('principal_id')}
            value={principal_id}
            onValue={setPrincipal}
          />
          <SelectField
            label={text.role}
            choices={roles.map(({ id, name }) => ({ value: id, label: name }))}
            fault={faultOf('role_id')}
            value={role_id}
            onValue={setRole}
          />
        </>
      )}
    </FormDialog>
  )
}

/** Lists the role assignments, with actions that add and revoke them. */
export function Assignments({
  project,
  items,
  roles,
}: {
  readonly project: string
  readonly items: readonly Assignment[]
  readonly roles: readonly Role[]
}) {
  const principals =
    useQuery(
      'principal.list',
      { project, include_disabled: true, limit: 200 },
      { kinds: ['principal'] },
    ).state.value.data?.items ?? []
  const [giving, setGiving] = useState(false)
  const [taking, setTaking] = useState<Assignment>()
  const nameOf = (id: string) => principals.find((one) => one.id === id)?.name ?? id
  const columns: readonly Column<Assignment>[] = [
    {
      name: text.name,
      cell: ({ principal_id }) => (
        <strong class="user-text" title={principal_id}>
          {nameOf(principal_id)}
        </strong>
      ),
    },
    { name: text.role, cell: ({ role_name }) => <span class="user-text">{role_name}</span> },
    {
      name: text.grantedBy,
      cell: ({ granted_by }) => (
        <span class="user-text">{granted_by ? nameOf(granted_by) : text.unknown}</span>
      ),
    },
    { name: text.assigned, cell: ({ created_at }) => <Time at={created_at} /> },
    ...(may('project.admin')
      ? [
          {
            name: text.actions,
            cell: (one: Assignment) => (
              <Button
                title={text.takeTitle(one.role_name, nameOf(one.principal_id))}
                onClick={() => setTaking(one)}
              >
                {text.take}
              </Button>
            ),
          },
        ]
      : []),
  ]
  return (
    <section class="stack">
      <div class="row apart">
        <h2>{text.assignments}</h2>
        {may('project.admin') && <Button onClick={() => setGiving(true)}>{text.giveRole}</Button>}
      </div>
      {items.length === 0 ? (
        <Empty icon="people" title={text.noAssignments} />
      ) : (
        <DataTable
          label={text.assignments}
          columns={columns}
          items={items}
          keyOf={({ id }) => id}
        />
      )}
      {giving && (
        <GiveRole
          project={project}
          roles={roles}
          principals={principals}
          onClose={() => setGiving(false)}
        />
      )}
      {taking && (
        <Confirm
          title={text.takeTitle(taking.role_name, nameOf(taking.principal_id))}
          action={text.take}
          danger
          onClose={() => setTaking(undefined)}
          onConfirm={async () => {
            await call('assignment.delete', { project, id: taking.id })
            showDone(text.taken)
          }}
        />
      )}
    </section>
  )
}
