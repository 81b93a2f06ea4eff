/** The rows and schemas of projects, and of the audit log of the organization. */
import { type Static, Type } from 'typebox'
import { additions, onlyIncluding } from '../additions.ts'
import { Closed, JsonObject, pageOf, paging, Tags, Timestamp, valuesOf } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'

export const Project = Type.Object({
  id: Type.String(),
  name: Type.String(),
  handle: Type.String(),
  access_mode: Type.Enum(['open', 'restricted']),
  separate_approver: Type.Optional(Type.Boolean()),
  email_notifications: Type.Optional(Type.Boolean()),
  attachments: Type.Optional(Type.Boolean()),
  description: Type.Optional(Type.String()),
  external_ref: Type.Optional(Type.String()),
  created_by: Type.Optional(Type.String()),
  tags: Type.Optional(Tags),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Project = Static<typeof Project>
const projectAdditions = additions({
  separate_approver: {},
  email_notifications: {},
  attachments: {},
})
const Name = Type.String({ minLength: 1, maxLength: 160 })
const External = Type.String({ minLength: 1, maxLength: 256 })
const AccessMode = Type.Enum(['open', 'restricted'])
const SeparateApprover = Type.Boolean({
  description:
    'Whether a destructive action of an agent must be approved by a principal other than the one ' +
    'that made the request to the agent',
})
const EmailNotifications = Type.Boolean({
  description:
    'Whether e-mail is sent for every interaction without a delivery setting. If false, e-mail ' +
    'is sent only for interactions whose delivery has a channel email',
})
const Attachments = Type.Boolean({
  description: 'Whether files can be attached to sessions; true by default',
})
const CreateProject = Closed({
  name: Name,
  handle: Type.Optional(Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 64 })),
  description: Type.Optional(Type.String({ maxLength: 1024 })),
  external_ref: Type.Optional(External),
  if_exists: Type.Optional(Type.Enum(['error', 'adopt'])),
  access_mode: Type.Optional(AccessMode),
  separate_approver: Type.Optional(SeparateApprover),
  email_notifications: Type.Optional(EmailNotifications),
  attachments: Type.Optional(Attachments),
  tags: Type.Optional(Tags),
})
const UpdateProject = Closed({
  name: Type.Optional(Name),
  description: Type.Optional(Type.String({ maxLength: 1024 })),
  external_ref: Type.Optional(External),
  access_mode: Type.Optional(AccessMode),
  separate_approver: Type.Optional(SeparateApprover),
  email_notifications: Type.Optional(EmailNotifications),
  attachments: Type.Optional(Attachments),
  seed_existing_members: Type.Optional(Type.Boolean()),
  tags: Type.Optional(Tags),
})
const checkCreate = (body: Static<typeof CreateProject>) =>
  body.if_exists === 'adopt' && body.external_ref === undefined
    ? [{ field: 'external_ref', message: 'adopt requires an external_ref' }]
    : []
const org = { kind: 'organization' } as const
const tag = 'projects'

export const projects = {
  'project.list': query('GET /projects', {
    summary: 'Projects that the caller can see, newest first',
    answeredBy: 'gateway',
    tag,
    permission: 'authenticated',
    query: Closed({
      search: Type.Optional(Type.String({ maxLength: 256 })),
      tag: Type.Optional(valuesOf(Type.String({ maxLength: 1024 }))),
      ...paging,
      include: projectAdditions.include,
    }),
    additions: projectAdditions.additions,
    reply: pageOf(Project),
  }),
  'project.create': command('POST /projects', {
    summary: 'Create a project, or adopt it by external reference',
    tag,
    permission: 'organization.admin',
    to: org,
    body: CreateProject,
    check: checkCreate,
    ...onlyIncluding(projectAdditions),
    reply: Project,
    status: 201,
    alsoStatus: [200],
    errors: [
      'already_exists',
      'external_identity_conflict',
      'project_archived',
      'project_capacity_reached',
    ],
  }),
  'project.get': query('GET /projects/:project', {
    summary: 'One project',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    ...onlyIncluding(projectAdditions),
    reply: Project,
    errors: ['not_found'],
  }),
  'project.update': command('PATCH /projects/:project', {
    summary: 'Change a project',
    tag,
    permission: 'project.admin',
    to: org,
    body: UpdateProject,
    ...onlyIncluding(projectAdditions),
    reply: Project,
    errors: ['not_found', 'conflict', 'already_exists'],
  }),
  'project.delete': command('DELETE /projects/:project', {
    summary: 'Delete a project; it accepts no new work, and running work is finished',
    tag,
    permission: 'organization.admin',
    to: org,
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
  'project.capabilities': query('GET /projects/:project/capabilities', {
    summary: 'Management rights of the caller in the project',
    answeredBy: 'gateway',
    tag,
    permission: 'authenticated',
    reply: Type.Object({ can_manage_project: Type.Boolean(), can_manage_access: Type.Boolean() }),
  }),
} as const

// Additions to the published values of `resource_type`: `organization`, `organization_action`,
// `personal_token`, `secret` for the named secrets of a project, `repository_host`, `saved_view`,
// and `webhook_delivery` for a delivery that was sent again.
export const AuditEntry = Type.Object({
  id: Type.String(),
  org_id: Type.String(),
  project_id: Type.Optional(Type.String()),
  resource_type: Type.String(),
  resource_id: Type.String(),
  resource_name: Type.Optional(Type.String()),
  action: Type.Enum(['create', 'update', 'delete']),
  actor_type: Type.Enum(['user', 'service_account', 'agent', 'system']),
  actor_id: Type.String(),
  user_id: Type.Optional(Type.String()),
  credential_type: Type.Optional(
    Type.Enum(['api_key', 'cli_token', 'console_session', 'worker_lease', 'internal']),
  ),
  credential_id: Type.Optional(Type.String()),
  request_id: Type.Optional(Type.String()),
  ip_address: Type.Optional(Type.String()),
  user_agent: Type.Optional(Type.String()),
  changes: Type.Optional(JsonObject),
  created_at: Timestamp,
})
export type AuditEntry = Static<typeof AuditEntry>
const text = Type.Optional(Type.String({ minLength: 1, maxLength: 256 }))
const Filters = Closed({
  resource_type: Type.Optional(valuesOf(Type.String())),
  project_id: text,
  resource_id: text,
  user_id: text,
  actor_type: Type.Optional(
    valuesOf(Type.Enum(['user', 'service_account', 'service', 'agent', 'system'])),
  ),
  actor_id: text,
  principal_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'Deprecated name of actor_id' }),
  ),
  action: Type.Optional(valuesOf(Type.Enum(['create', 'update', 'delete']))),
  created_after: Type.Optional(Timestamp),
  created_before: Type.Optional(Timestamp),
  ...paging,
})
export const audit = {
  'audit.list': query('GET /audit-logs', {
    summary: 'Audit log of the organization, newest first',
    tag: 'audit logs',
    permission: 'access.manage',
    query: Filters,
    reply: pageOf(AuditEntry),
  }),
  'audit.project': query('GET /projects/:project/audit-logs', {
    summary: 'Audit log of a project, newest first',
    tag: 'compat',
    alias: 'audit.list',
    as: 'audit.list',
    permission: 'access.manage',
    query: Filters,
    reply: pageOf(AuditEntry),
  }),
} as const

export type OrganizationProjectEvent =
  | (Event & { readonly type: 'organization.created'; readonly id: string; readonly name: string })
  | (Event & { readonly type: 'project.created'; readonly id: string; readonly project: Project })
  | (Event & {
      readonly type: 'project.updated'
      readonly id: string
      readonly project: Patch<Project>
      readonly changes: Changes
    })
  | (Event & {
      readonly type: 'project.deleted'
      readonly id: string
      readonly name: string
      readonly at: number
    })
