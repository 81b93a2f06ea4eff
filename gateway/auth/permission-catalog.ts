/**
 * The system roles and the permissions as the API lists them, with the installation's brand in the
 * ids of permissions. Roles that a project defines are not included, because the project's actor
 * stores them.
 */

import type { Role, roles } from '../../protocol/access/role-rows.ts'
import {
  brandedPermission,
  organizationOnly,
  type Permission,
  permissions,
  type SystemRole,
  systemRoleId,
  systemRoleNames,
  systemRoles,
} from '../../protocol/access/schema.ts'
import type { Named } from '../../protocol/agents/selectors.ts'
import type { Reply } from '../../protocol/contract.ts'
import type { Project } from '../../protocol/projects/rows.ts'

const description: Readonly<Record<SystemRole, string>> = {
  Viewer: 'Reads everything in the project.',
  Operator: 'Starts and controls runs, answers interactions, connects workers.',
  Editor: 'Also changes definitions.',
  Admin: 'Also manages the project, its principals and keys.',
  Owner: 'Also owns the organization.',
}
const scopeOf = (permission: string): string =>
  organizationOnly.has(permission)
    ? 'org'
    : permission.startsWith('actions.')
      ? 'action'
      : 'project'

/**
 * Returns the system roles, weakest first, with the permissions that they grant inside a project.
 * Their creation time is the creation time of the project.
 */
export const rolesOf = ({ created_at }: Project, brand: string): Role[] =>
  systemRoleNames.map((name) => ({
    id: systemRoleId(name),
    name,
    description: description[name],
    system_defined: true,
    permissions: systemRoles[name]
      .filter((permission) => !organizationOnly.has(permission))
      .map((permission) => brandedPermission(permission, brand)),
    created_at,
    updated_at: created_at,
  }))

/** Maximum number of groups, and of action names in one group. */
const MAX_GROUPS = { groups: 64, children: 200 } as const
type Group = Reply<(typeof roles)['permission.list']>['action_groups'][number]
/**
 * Returns the groups of action permissions: one group of all actions, and one group for each prefix
 * before the first dot of an action's name.
 */
function groupsOf(actions: readonly Named[]): Group[] {
  const group = (prefix: string, label: string, source?: Group['source']): Group => {
    const members = actions.filter(({ name }) => name.startsWith(prefix))
    const isPlatform = members.every((action) => action.source === 'platform')
    return {
      id: `actions.execute.${prefix}*`,
      label,
      source: source ?? (isPlatform ? 'platform' : 'custom'),
      children: members.slice(0, MAX_GROUPS.children).map(({ name }) => `actions.execute.${name}`),
    }
  }
  const words = [
    ...new Set(
      actions.flatMap(({ name }) => (name.includes('.') ? [name.slice(0, name.indexOf('.'))] : [])),
    ),
  ].sort()
  return [
    group('', 'All actions', 'platform'),
    ...words.slice(0, MAX_GROUPS.groups - 1).map((word) => group(`${word}.`, `Actions of ${word}`)),
  ]
}

/**
 * Returns the catalog of permissions: every permission, the system roles as presets, and the groups
 * of actions. A preset has all permissions that its role grants to an organization key.
 * @param brand the installation's brand in lower case.
 * @param actions the actions whose execution needs a permission.
 */
export function catalogOf(
  brand: string,
  actions: readonly Named[],
): Reply<(typeof roles)['permission.list']> {
  const ids = Object.keys(permissions) as Permission[]
  return {
    items: ids.map((id) => ({
      id: brandedPermission(id, brand),
      ...permissions[id],
      scope: scopeOf(id),
      assignable: !organizationOnly.has(id),
      user_kinds: ['human', 'agent', 'service'],
    })),
    presets: systemRoleNames.map((name) => ({
      id: systemRoleId(name),
      label: name,
      description: description[name],
      scope: systemRoles[name].some((permission) => organizationOnly.has(permission))
        ? 'org'
        : 'project',
      permissions: systemRoles[name].map((permission) => brandedPermission(permission, brand)),
    })),
    action_groups: groupsOf(actions),
  }
}
