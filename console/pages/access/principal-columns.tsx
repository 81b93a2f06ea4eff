/** The columns of the list of principals. */
import type { PrincipalRecord } from '../../../protocol/access/rows.ts'
import { CopyButton } from '../../design/copy.tsx'
import type { Column } from '../../design/data-table.tsx'
import { Menu, type MenuItem } from '../../design/overlay.tsx'
import { Badge } from '../../design/states.tsx'
import { Time } from '../../design/time.tsx'
import type { Role } from './roles-of.ts'
import { accessText as text } from './text.ts'

interface CellProps {
  readonly principal: PrincipalRecord
}

const Names = ({ principal: { name, email, description, id } }: CellProps) => (
  <>
    <strong class="user-text">{name}</strong>
    {email && <div class="user-text">{email}</div>}
    {description && <div class="small soft user-text">{description}</div>}
    <div class="small soft mono id-line">
      <span class="user-text">{id}</span>
      <CopyButton value={id} />
    </div>
  </>
)

const RoleNames = ({
  ids,
  roles,
}: {
  readonly ids: readonly string[]
  readonly roles: readonly Role[]
}) =>
  ids.length === 0 ? (
    <span class="soft">{text.none}</span>
  ) : (
    <span class="row tight">
      {ids.map((id) => (
        <Badge key={id}>
          <span class="user-text">{roles.find((role) => role.id === id)?.name ?? id}</span>
        </Badge>
      ))}
    </span>
  )

const State = ({ principal: { state } }: CellProps) => (
  <Badge tone={state === 'active' ? 'good' : 'warn'}>
    {state === 'active' ? text.active : state === 'disabled' ? text.disabled : state}
  </Badge>
)

/** How a person signs in. */
const SignIn = ({ principal: { identity } }: CellProps) => (
  <span class="user-text">
    {identity ? `${text.provider} ${URL.parse(identity.issuer)?.host ?? ''}` : text.token}
  </span>
)

/**
 * Returns the columns for people or, if `person` is false, for services and agents.
 * @param actionsOf returns the menu items of a principal. Without items, there is no menu.
 */
export const principalColumns = (
  person: boolean,
  roles: readonly Role[],
  actionsOf: (principal: PrincipalRecord) => readonly MenuItem[],
): readonly Column<PrincipalRecord>[] => [
  { name: text.name, cell: (principal) => <Names principal={principal} /> },
  { name: text.roles, cell: ({ role_ids = [] }) => <RoleNames ids={role_ids} roles={roles} /> },
  { name: text.state, cell: (principal) => <State principal={principal} /> },
  person
    ? { name: text.signIn, cell: (principal) => <SignIn principal={principal} /> }
    : { name: text.kind, cell: ({ kind }) => kind },
  { name: text.created, cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: text.actions,
    cell: (principal) => {
      const items = actionsOf(principal)
      return items.length > 0 && <Menu label={text.actionsOf(principal.name)} items={items} />
    },
  },
]
