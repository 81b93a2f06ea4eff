/**
 * Rows, schemas and events of roles, role assignments and the permission catalog. `roles.ts`
 * computes the permissions that roles grant.
 */
import { type Static, Type } from 'typebox'
import { Closed, cutting, Id, listOf, pageOf, paging, Tags, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import type { CustomRole } from './roles.ts'

export const Role = Type.Object({
  id: Type.String(),
  name: Type.String(),
  permissions: Type.Array(Type.String()),
  system_defined: Type.Boolean(),
  project_id: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  tags: Type.Optional(Tags),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Role = Static<typeof Role>
const Permissions = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
  maxItems: 64,
  uniqueItems: true,
  description:
    'Permission ids of the catalog, actions.execute.<action> or actions.execute.<prefix>.*',
})
const Description = Type.String({ maxLength: 1024 })
export const CreateRole = Closed({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  permissions: Permissions,
  description: Type.Optional(Description),
  tags: Type.Optional(Tags),
})
const UpdateRole = Closed({
  permissions: Type.Optional(Permissions),
  description: Type.Optional(Description),
  tags: Type.Optional(Tags),
})

export const RoleAssignment = Type.Object({
  id: Type.String(),
  principal_id: Type.String(),
  role_id: Type.String(),
  role_name: Type.String(),
  created_at: Timestamp,
  granted_by: Type.Optional(Type.String()),
})
export type RoleAssignment = Static<typeof RoleAssignment>
const CreateAssignment = Closed({
  principal_id: Id,
  role_id: Type.Optional(Id),
  role_name: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
})
const checkAssignment = ({ role_id, role_name }: Static<typeof CreateAssignment>) =>
  (role_id === undefined) === (role_name === undefined)
    ? [{ field: 'role_id', message: 'give exactly one of role_id and role_name' }]
    : []

export const PermissionCatalog = Type.Object({
  items: Type.Array(
    Type.Object({
      id: Type.String(),
      label: Type.String(),
      description: Type.String(),
      scope: Type.String(),
      category: Type.String(),
      risk: Type.String(),
      assignable: Type.Boolean(),
      user_kinds: Type.Array(Type.String()),
    }),
  ),
  presets: Type.Array(
    Type.Object({
      id: Type.String(),
      label: Type.String(),
      description: Type.String(),
      scope: Type.String(),
      permissions: Type.Array(Type.String()),
    }),
  ),
  action_groups: Type.Array(
    Type.Object({
      id: Type.String(),
      label: Type.String(),
      source: Type.String(),
      children: Type.Array(Type.String()),
    }),
  ),
})
const P = '/projects/:project'
const tag = 'access'
const mine = { kind: 'project' } as const

export const roles = {
  'role.list': query(`GET ${P}/roles`, {
    summary: 'Roles, system roles first',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed(paging),
    reply: pageOf(Role),
  }),
  'role.create': command(`POST ${P}/roles`, {
    grantsPermissions: true,
    summary: 'Create a role of permissions that the caller has',
    tag,
    permission: 'project.admin',
    to: mine,
    body: CreateRole,
    reply: Role,
    status: 201,
    errors: ['already_exists', 'conflict'],
  }),
  'role.get': query(`GET ${P}/roles/:id`, {
    summary: 'One role',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    reply: Role,
    errors: ['not_found'],
  }),
  'role.update': command(`PATCH ${P}/roles/:id`, {
    grantsPermissions: true,
    summary: 'Change a role; the change applies to every principal that has it',
    tag,
    permission: 'project.admin',
    to: mine,
    body: UpdateRole,
    reply: Role,
    errors: ['not_found', 'forbidden'],
  }),
  'role.delete': command(`DELETE ${P}/roles/:id`, {
    summary: 'Delete a role and remove it from every principal that has it',
    tag,
    permission: 'project.admin',
    to: mine,
    status: 204,
    errors: ['not_found', 'forbidden'],
  }),
  'assignment.list': query(`GET ${P}/role-assignments`, {
    summary: 'Assignments of roles to principals',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed({ principal_id: Type.Optional(Id), role_id: Type.Optional(Id), ...cutting }),
    reply: listOf(RoleAssignment),
  }),
  'assignment.create': command(`POST ${P}/role-assignments`, {
    grantsPermissions: true,
    summary: 'Give a principal a role that grants no more than the caller has',
    tag,
    permission: 'project.admin',
    to: mine,
    body: CreateAssignment,
    check: checkAssignment,
    reply: RoleAssignment,
    status: 201,
    errors: ['already_exists', 'conflict'],
  }),
  'assignment.delete': command(`DELETE ${P}/role-assignments/:id`, {
    summary: 'Remove a role from a principal',
    tag,
    permission: 'project.admin',
    to: mine,
    status: 204,
    errors: ['not_found'],
  }),
  'permission.list': query(`GET ${P}/permissions`, {
    summary: 'Permissions, and the permissions that the system roles grant',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed(cutting),
    reply: PermissionCatalog,
  }),
} as const

export type RoleEvent =
  | (Event & { readonly type: 'role.created'; readonly id: string; readonly role: CustomRole })
  | (Event & {
      readonly type: 'role.updated'
      readonly id: string
      readonly role: Patch<CustomRole>
      readonly changes: Changes
    })
  /** The assignments of the role are deleted with it. */
  | (Event & { readonly type: 'role.deleted'; readonly id: string; readonly name: string })
  | (Event & {
      readonly type: 'assignment.created'
      readonly id: string
      readonly assignment: RoleAssignment
    })
  | (Event & {
      readonly type: 'assignment.deleted'
      readonly id: string
      readonly assignment: RoleAssignment
    })
