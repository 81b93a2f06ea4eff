/** Roles and permissions as clients read them: fixed by the service, spelled with its brand. */
import { brandedPermission, organizationOnly, permissions, systemRoleId, systemRoleNames, systemRoles, type Permission, type SystemRole } from '../protocol/access.ts'
import type { roles, Role } from '../protocol/api/roles.ts'
import type { Project } from '../protocol/api/projects.ts'
import type { Reply } from '../protocol/contract.ts'

const meaning: Readonly<Record<SystemRole, string>> = {
  Viewer: 'Reads everything in the project.',
  Operator: 'Starts and controls runs, answers interactions, connects workers.',
  Editor: 'Also changes definitions.',
  Admin: 'Also manages the project, its principals and keys.',
  Owner: 'Also owns the organization.',
}
const scopeOf = (permission: string): string => (organizationOnly.has(permission) ? 'org' : permission.startsWith('actions.') ? 'action' : 'project')

/** The system roles, weakest first, with what they grant inside a project. They are as old as the project. */
export const rolesOf = ({ created_at }: Project, brand: string): Role[] =>
  systemRoleNames.map((name) => ({
    id: systemRoleId(name), name, description: meaning[name], system_defined: true,
    permissions: systemRoles[name].filter((permission) => !organizationOnly.has(permission)).map((permission) => brandedPermission(permission, brand)),
    created_at, updated_at: created_at,
  }))

/** Every permission, and the system roles as presets with all that they grant to an organization key. @param brand lower case. */
export function catalogOf(brand: string): Reply<(typeof roles)['permission.list']> {
  const ids = Object.keys(permissions) as Permission[]
  return {
    items: ids.map((id) => ({
      id: brandedPermission(id, brand), ...permissions[id], scope: scopeOf(id), assignable: !organizationOnly.has(id), user_kinds: ['human', 'agent', 'service'],
    })),
    presets: systemRoleNames.map((name) => ({
      id: systemRoleId(name), label: name, description: meaning[name], scope: systemRoles[name].some((permission) => organizationOnly.has(permission)) ? 'org' : 'project',
      permissions: systemRoles[name].map((permission) => brandedPermission(permission, brand)),
    })),
    action_groups: [{ id: 'actions.execute.*', label: 'All actions', source: 'platform', children: [] }],
  }
}
