/**
 * People: principals of kind `user`, who sign in with personal tokens. A personal token is stored
 * as a hash, like a key, and returned only when it is created. It acts as the person to whom it
 * belongs, with the roles of that person.
 */
import { Type } from 'typebox'
import { Closed, Id, JsonObject, pageOf, paging, Tags, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import { prefixes } from '../ids.ts'
import { ApiKey, ApiKeyCreated, PrincipalRecord } from './rows.ts'

const fields = {
  email: Type.Optional(
    Type.String({
      pattern: '^(|[^\\s@]+@[^\\s@]+)$',
      maxLength: 254,
      description: 'E-mail address, unique in the project regardless of case',
    }),
  ),
  description: Type.Optional(Type.String({ maxLength: 1024 })),
  metadata: Type.Optional(JsonObject),
  tags: Type.Optional(Tags),
}
const Name = Type.String({ minLength: 1, maxLength: 128 })
const CreateUser = Closed({
  name: Name,
  ...fields,
  role_ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: 16, uniqueItems: true })),
})
const UpdateUser = Closed({
  name: Type.Optional(Name),
  ...fields,
  state: Type.Optional(Type.Enum(['active', 'disabled'])),
  role_ids: Type.Optional(Type.Array(Id, { maxItems: 16, uniqueItems: true })),
})
const CreateToken = Closed({
  name: Name,
  expires_at: Type.Optional(Timestamp),
  tags: Type.Optional(Tags),
})

export const Me = Type.Object({
  principal: Type.Object({
    id: Type.String(),
    kind: Type.Enum(['service', 'agent', 'system', 'user']),
    name: Type.String(),
  }),
  credential: Type.Object({
    id: Type.String(),
    type: Type.Enum(['api_key', 'cli_token', 'console_session']),
    name: Type.String(),
  }),
  permissions: Type.Array(Type.String(), {
    description:
      'Permission ids in the form that roles use; may contain wildcards, such as ' +
      'actions.execute.crm.*',
  }),
})

const P = '/projects/:project'
const tag = 'people'
const mine = { kind: 'project' } as const

export const users = {
  'user.list': query(`GET ${P}/users`, {
    summary: 'People of the project, newest first',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed({ include_disabled: Type.Optional(Type.Boolean()), ...paging }),
    reply: pageOf(PrincipalRecord),
  }),
  'user.create': command(`POST ${P}/users`, {
    grantsPermissions: true,
    summary: 'Add a person',
    tag,
    permission: 'project.admin',
    to: mine,
    body: CreateUser,
    reply: PrincipalRecord,
    status: 201,
    errors: ['already_exists'],
  }),
  'user.get': query(`GET ${P}/users/:id`, {
    summary: 'One person',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    reply: PrincipalRecord,
    errors: ['not_found'],
  }),
  'user.update': command(`PATCH ${P}/users/:id`, {
    grantsPermissions: true,
    summary: 'Change a person, their state or their roles',
    leavesChannels: 'when_disabled',
    tag,
    permission: 'project.admin',
    to: mine,
    body: UpdateUser,
    reply: PrincipalRecord,
    errors: ['not_found', 'already_exists', 'conflict'],
  }),
  'user.delete': command(`DELETE ${P}/users/:id`, {
    summary: 'Archive a person and revoke their tokens',
    leavesChannels: 'always',
    tag,
    permission: 'project.admin',
    to: mine,
    status: 204,
    errors: ['not_found'],
  }),
  'token.create': command(`POST ${P}/users/:id/tokens`, {
    summary: 'Create a personal token',
    tag,
    permission: 'access.manage',
    to: mine,
    body: CreateToken,
    reply: ApiKeyCreated,
    status: 201,
    errors: ['not_found', 'already_exists', 'conflict'],
  }),
  'token.list': query(`GET ${P}/users/:id/tokens`, {
    summary: 'Personal tokens that are not revoked',
    answeredBy: 'gateway',
    tag,
    permission: 'access.manage',
    query: Closed(paging),
    reply: pageOf(ApiKey),
    errors: ['not_found'],
  }),
  'token.revoke': command(`DELETE ${P}/users/:id/tokens/:token`, {
    summary: 'Revoke a personal token',
    tag,
    permission: 'access.manage',
    to: mine,
    status: 204,
    errors: ['not_found'],
  }),

  'me.get': query(`GET ${P}/me`, {
    summary: 'Principal, credential and permissions of the caller in the project',
    answeredBy: 'gateway',
    tag,
    permission: 'authenticated',
    reply: Me,
  }),
  'me.create_token': command(`POST ${P}/me/tokens`, {
    summary: 'Create a personal token for the caller',
    tag,
    permission: 'authenticated',
    to: mine,
    body: CreateToken,
    reply: ApiKeyCreated,
    status: 201,
    errors: ['not_found', 'already_exists', 'conflict', 'permission_denied'],
  }),
  'me.list_tokens': query(`GET ${P}/me/tokens`, {
    summary: 'Personal tokens of the caller',
    answeredBy: 'gateway',
    tag,
    permission: 'authenticated',
    query: Closed(paging),
    reply: pageOf(ApiKey),
    errors: ['not_found'],
  }),
  'me.revoke_token': command(`DELETE ${P}/me/tokens/:token`, {
    summary: 'Revoke a personal token of the caller',
    tag,
    permission: 'authenticated',
    to: mine,
    status: 204,
    errors: ['not_found'],
  }),
} as const

/** Whether a stored key is a personal token. The prefix of its id shows this. */
export const isPersonal = ({ id }: Pick<ApiKey, 'id'>): boolean =>
  id.startsWith(`${prefixes.token}_`)
