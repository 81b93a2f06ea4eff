/**
 * Permissions, and the system roles that grant them. On the wire, the configured brand precedes
 * each id (`service.project.view`), except for `actions.execute.*`. The ids in this file lack this
 * prefix. Permissions on single actions (`actions.execute.<action>`) are not listed here.
 */
export const permissions = {
  'project.view': {
    label: 'View',
    description: 'Read every record of the project.',
    category: 'project',
    risk: 'low',
  },
  'project.edit': {
    label: 'Edit',
    description: 'Create, change and delete definitions.',
    category: 'project',
    risk: 'medium',
  },
  'project.admin': {
    label: 'Administer',
    description: 'Change the project, its roles and principals.',
    category: 'project',
    risk: 'high',
  },
  'runs.operate': {
    label: 'Operate runs',
    description: 'Start, cancel, resume, retry and signal runs.',
    category: 'runs',
    risk: 'medium',
  },
  'work.execute': {
    label: 'Execute work',
    description: 'Connect workers and claim jobs.',
    category: 'work',
    risk: 'medium',
  },
  'agent.invoke': {
    label: 'Invoke agents',
    description: 'Send messages and nudges to agents.',
    category: 'runs',
    risk: 'medium',
  },
  'channel.write': {
    label: 'Use channels',
    description:
      'Create channels and direct messages, write in channels as a member, join public channels.',
    category: 'project',
    risk: 'low',
  },
  'interaction.respond': {
    label: 'Respond',
    description:
      'Answer and review interactions with a key that has a scope role. Without a scope role, ' +
      'each target may answer.',
    category: 'runs',
    risk: 'medium',
  },
  'actions.execute.*': {
    label: 'Execute actions',
    description: 'Invoke every action.',
    category: 'actions',
    risk: 'medium',
  },
  'access.manage': {
    label: 'Manage access',
    description: 'Create and revoke keys, read the audit log.',
    category: 'access',
    risk: 'high',
  },
  'organization.admin': {
    label: 'Administer the organization',
    description: 'Create projects and organization keys.',
    category: 'access',
    risk: 'critical',
  },
  'organization.delete': {
    label: 'Own the organization',
    description: 'Billing, and deletion of the organization.',
    category: 'billing',
    risk: 'critical',
  },
} as const satisfies Record<
  string,
  {
    label: string
    description: string
    category: string
    risk: 'low' | 'medium' | 'high' | 'critical'
  }
>
export type Permission = keyof typeof permissions

const viewer = ['project.view'] as const
const operator = [
  ...viewer,
  'runs.operate',
  'work.execute',
  'agent.invoke',
  'interaction.respond',
  'channel.write',
  'actions.execute.*',
] as const
const editor = [...operator, 'project.edit'] as const
const admin = [...editor, 'project.admin', 'access.manage', 'organization.admin'] as const
const owner = [...admin, 'organization.delete'] as const

/** System roles, weakest first. Each includes all permissions of the previous one. */
export const systemRoles = {
  Viewer: viewer,
  Operator: operator,
  Editor: editor,
  Admin: admin,
  Owner: owner,
} as const satisfies Record<string, readonly Permission[]>
export type SystemRole = keyof typeof systemRoles
export const systemRoleNames = Object.keys(systemRoles) as SystemRole[]

/** Returns the id of a system role, which is the same in every project. */
export const systemRoleId = (name: SystemRole): string => `role_${name.toLowerCase()}`
/** Returns the system role with this id, or undefined. */
export const systemRoleById = (id: string): SystemRole | undefined =>
  systemRoleNames.find((name) => systemRoleId(name) === id)

/**
 * Returns the wire id of a permission.
 * @param brand lower-case brand.
 */
export const brandedPermission = (permission: string, brand: string): string =>
  permission.startsWith('actions.') ? permission : `${brand}.${permission}`

/** Permissions that no role grants inside a project. */
export const organizationOnly: ReadonlySet<string> = new Set([
  'organization.admin',
  'organization.delete',
])
