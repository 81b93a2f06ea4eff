/**
 * Rows, schemas and events of API keys and principals. The rows for people and their tokens are in
 * `user-rows.ts`.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, JsonObject, pageOf, paging, Tags, Timestamp, valuesOf } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import { PersonIdentity } from './identity.ts'
import { systemRoleNames } from './schema.ts'

const key = {
  id: Type.String(),
  name: Type.String(),
  key_prefix: Type.String({ description: 'First 8 characters of the key' }),
  principal_id: Type.String(),
  scope_role_id: Type.Optional(Type.String()),
  org_role: Type.Optional(Type.Enum([...systemRoleNames])),
  expires_at: Type.Optional(Timestamp),
  last_used_at: Type.Optional(Timestamp),
  tags: Type.Optional(Tags),
  created_at: Timestamp,
  updated_at: Timestamp,
}
export const ApiKey = Type.Object(key)
export type ApiKey = Static<typeof ApiKey>
export const ApiKeyCreated = Type.Object({
  ...key,
  key: Type.String({ description: 'Text of the key; returned only in this response' }),
})
const KeyName = Type.String({ minLength: 1, maxLength: 128 })
const CreateApiKey = Closed({
  name: KeyName,
  principal_id: Type.Optional(Id),
  scope_role_id: Type.Optional(Id),
  allow_unassigned_principal: Type.Optional(Type.Boolean()),
  expires_at: Type.Optional(Timestamp),
  tags: Type.Optional(Tags),
})
const CreateOrganizationApiKey = Closed({
  name: KeyName,
  role: Type.Optional(Type.Enum([...systemRoleNames])),
  expires_at: Type.Optional(Timestamp),
  tags: Type.Optional(Tags),
})

const PrincipalKind = Type.Enum(['service', 'agent', 'system', 'user'])
export const PrincipalRecord = Type.Object({
  id: Type.String(),
  kind: PrincipalKind,
  state: Type.Enum(['active', 'disabled', 'deleted']),
  name: Type.String(),
  email: Type.Optional(Type.String({ description: 'E-mail address; only for people' })),
  description: Type.Optional(Type.String()),
  handle: Type.Optional(Type.String()),
  owner_id: Type.Optional(Type.String()),
  identity: Type.Optional(PersonIdentity),
  role_ids: Type.Optional(Type.Array(Type.String())),
  metadata: Type.Optional(JsonObject),
  tags: Type.Optional(Tags),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type PrincipalRecord = Static<typeof PrincipalRecord>
/** A principal as its project stores it. The role assignments are stored separately. */
export type PrincipalWithoutRoles = Omit<PrincipalRecord, 'role_ids'>
const CreatePrincipal = Closed({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  description: Type.Optional(Type.String({ maxLength: 1024 })),
  owner_id: Type.Optional(Id),
  metadata: Type.Optional(JsonObject),
  role_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 16, uniqueItems: true })),
  tags: Type.Optional(Tags),
})
const UpdatePrincipal = Closed({
  description: Type.Optional(Type.String({ maxLength: 1024 })),
  state: Type.Optional(Type.Enum(['active', 'disabled'])),
  owner_id: Type.Optional(Id),
  metadata: Type.Optional(JsonObject),
  role_ids: Type.Optional(Type.Array(Id, { maxItems: 16, uniqueItems: true })),
  tags: Type.Optional(Tags),
})
const P = '/projects/:project'
const keys = 'api keys'
const tag = 'access'
const mine = { kind: 'project' } as const
const org = { kind: 'organization' } as const

export const access = {
  'key.create_organization': command('POST /api-keys', {
    summary: 'Create an organization key',
    tag: keys,
    permission: 'organization.admin',
    to: org,
    body: CreateOrganizationApiKey,
    reply: ApiKeyCreated,
    status: 201,
    errors: ['already_exists'],
  }),
  'key.list_organization': query('GET /api-keys', {
    summary: 'Organization keys that are not revoked',
    answeredBy: 'gateway',
    tag: keys,
    permission: 'organization.admin',
    query: Closed(paging),
    reply: pageOf(ApiKey),
  }),
  'key.get_organization': query('GET /api-keys/:id', {
    summary: 'One organization key',
    answeredBy: 'gateway',
    tag: keys,
    permission: 'organization.admin',
    reply: ApiKey,
    errors: ['not_found'],
  }),
  'key.revoke_organization': command('DELETE /api-keys/:id', {
    summary: 'Revoke an organization key',
    tag: keys,
    permission: 'organization.admin',
    to: org,
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
  'key.create': command(`POST ${P}/api-keys`, {
    summary: 'Create a project key',
    tag: keys,
    permission: 'access.manage',
    to: mine,
    body: CreateApiKey,
    reply: ApiKeyCreated,
    status: 201,
    errors: ['already_exists', 'principal_has_no_roles'],
  }),
  'key.list': query(`GET ${P}/api-keys`, {
    summary: 'Project keys that are not revoked',
    answeredBy: 'gateway',
    tag: keys,
    permission: 'access.manage',
    query: Closed(paging),
    reply: pageOf(ApiKey),
  }),
  'key.get': query(`GET ${P}/api-keys/:id`, {
    summary: 'One project key',
    answeredBy: 'gateway',
    tag: keys,
    permission: 'access.manage',
    reply: ApiKey,
    errors: ['not_found'],
  }),
  'key.revoke': command(`DELETE ${P}/api-keys/:id`, {
    summary: 'Revoke a project key',
    tag: keys,
    permission: 'access.manage',
    to: mine,
    status: 204,
    errors: ['not_found'],
  }),

  'principal.list': query(`GET ${P}/principals`, {
    summary: 'Principals of the project',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed({
      kind: Type.Optional(PrincipalKind),
      include_disabled: Type.Optional(Type.Boolean()),
      ...paging,
      include: Type.Optional(
        valuesOf(
          Type.Enum(['next_cursor'], {
            description: 'Also return has_more and next_cursor, as every page after a cursor does',
          }),
        ),
      ),
    }),
    // Published clients decode this list strictly, so a page has these members only on request.
    reply: Type.Object({
      items: Type.Array(PrincipalRecord),
      has_more: Type.Optional(Type.Boolean()),
      next_cursor: Type.Optional(Type.String()),
    }),
  }),
  'principal.create': command(`POST ${P}/principals`, {
    grantsPermissions: true,
    summary: 'Create a service principal',
    tag,
    permission: 'project.admin',
    to: mine,
    body: CreatePrincipal,
    reply: PrincipalRecord,
    status: 201,
    errors: ['already_exists'],
  }),
  'principal.get': query(`GET ${P}/principals/:id`, {
    summary: 'One principal',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    reply: PrincipalRecord,
    errors: ['not_found'],
  }),
  'principal.update': command(`PATCH ${P}/principals/:id`, {
    grantsPermissions: true,
    summary: 'Change a principal, its state or its roles',
    leavesChannels: 'when_disabled',
    tag,
    permission: 'project.admin',
    to: mine,
    body: UpdatePrincipal,
    reply: PrincipalRecord,
    errors: ['not_found'],
  }),
  'principal.delete': command(`DELETE ${P}/principals/:id`, {
    summary: 'Archive a principal',
    leavesChannels: 'always',
    tag,
    permission: 'project.admin',
    to: mine,
    status: 204,
    errors: ['not_found', 'conflict'],
  }),

  'key.create_organization_old': command('POST /organization/api-keys', {
    summary: 'Create an organization key',
    tag: 'compat',
    alias: 'key.create_organization',
    as: 'key.create_organization',
    permission: 'organization.admin',
    to: org,
    body: CreateOrganizationApiKey,
    reply: ApiKeyCreated,
    status: 201,
    errors: ['already_exists'],
  }),
  'key.list_organization_old': query('GET /organization/api-keys', {
    summary: 'Organization keys',
    tag: 'compat',
    alias: 'key.list_organization',
    as: 'key.list_organization',
    permission: 'organization.admin',
    query: Closed(paging),
    reply: pageOf(ApiKey),
  }),
  'key.get_organization_old': query('GET /organization/api-keys/:id', {
    summary: 'One organization key',
    tag: 'compat',
    alias: 'key.get_organization',
    as: 'key.get_organization',
    permission: 'organization.admin',
    reply: ApiKey,
    errors: ['not_found'],
  }),
  'key.revoke_organization_old': command('DELETE /organization/api-keys/:id', {
    summary: 'Revoke an organization key',
    tag: 'compat',
    alias: 'key.revoke_organization',
    as: 'key.revoke_organization',
    permission: 'organization.admin',
    to: org,
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
} as const

/**
 * The caller's permissions. The gateway adds them to commands that grant permissions, so that
 * callers grant only permissions that they hold.
 */
export interface Holds {
  readonly holds: readonly string[]
}
/**
 * The stored form of a key: its hash (SHA-256, hex) and its first characters, never the whole key.
 * The gateway adds it to the command that creates the key. `derived`: the key was derived from the
 * idempotency key of the request, so a repeated request results in the same key.
 */
export interface KeyMaterial {
  readonly hash: string
  readonly key_prefix: string
  readonly derived?: true
}
export type KeyEvent =
  | (Event & {
      readonly type: 'key.created'
      readonly id: string
      readonly key: ApiKey
      readonly hash: string
      readonly derived?: true
    })
  | (Event & {
      readonly type: 'key.revoked'
      readonly id: string
      readonly name: string
      readonly at: number
    })
  | (Event & { readonly type: 'key.used'; readonly id: string; readonly at: number })
export type PrincipalEvent =
  | (Event & {
      readonly type: 'principal.created'
      readonly id: string
      readonly principal: PrincipalWithoutRoles
    })
  | (Event & {
      readonly type: 'principal.updated'
      readonly id: string
      readonly principal: Patch<PrincipalWithoutRoles>
      readonly changes: Changes
    })
  /** The role assignments of the principal are deleted with it. */
  | (Event & { readonly type: 'principal.deleted'; readonly id: string; readonly name: string })
