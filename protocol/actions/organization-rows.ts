/**
 * Actions of the organization: HTTP endpoints that every project can call. Each action has numbered
 * versions of its signing secret. After a secret has been replaced, receivers accept the previous
 * version for a limited time, so the replacement causes no interruption.
 */
import { type Static, Type } from 'typebox'
import { Closed, JsonObject, pageOf, paging, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { ChangedUrlParts, UrlParts } from '../masked-url.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'
import {
  Annotations,
  checkEndpoint,
  checkSchemas,
  Description,
  EndpointUrl,
  type SealedSecret,
  Title,
} from './rows.ts'

const SecretVersion = Type.Object({
  version: Type.Integer({ minimum: 1 }),
  status: Type.Enum(['pending', 'active', 'retiring', 'retired', 'revoked']),
  created_at: Timestamp,
  activated_at: Type.Optional(Timestamp),
  accept_until: Type.Optional(Timestamp),
  retired_at: Type.Optional(Timestamp),
  revoked_at: Type.Optional(Timestamp),
})
export type SecretVersion = Static<typeof SecretVersion>
export const OrganizationAction = Type.Object({
  id: Type.String(),
  name: Type.String(),
  endpoint_url: Type.String(),
  invocation_format: Type.Enum(['signed_context_v1']),
  enabled: Type.Boolean(),
  secret_ref: Type.String(),
  secret_versions: Type.Array(SecretVersion),
  active_signing_version: Type.Optional(Type.Integer()),
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  input_schema: Type.Optional(JsonObject),
  output_schema: Type.Optional(JsonObject),
  annotations: Type.Optional(JsonObject),
  signing_secret: Type.Optional(
    Type.String({
      description:
        'Signing secret of the newest version, 32 bytes in base64; returned only when it is ' +
        'created',
    }),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type OrganizationAction = Static<typeof OrganizationAction>
/** A name follows the rules for names of project actions and contains at least one dot. */
const DottedName = Type.String({
  pattern: '^[a-z0-9]+([_-][a-z0-9]+)*\\.[a-z0-9]+([._-][a-z0-9]+)*$',
  maxLength: 128,
})
const common = {
  title: Type.Optional(Title),
  description: Type.Optional(Description),
  input_schema: Type.Optional(JsonObject),
  output_schema: Type.Optional(JsonObject),
  enabled: Type.Optional(Type.Boolean()),
}
const CreateOrganizationAction = Closed({
  name: DottedName,
  endpoint_url: EndpointUrl,
  invocation_format: Type.Optional(Type.Enum(['signed_context_v1'])),
  annotations: Type.Optional(Annotations),
  ...common,
})
const UpdateOrganizationAction = Closed({
  name: Type.Optional(DottedName),
  endpoint_url: Type.Optional(EndpointUrl),
  annotations: Type.Optional(Type.Union([Annotations, Type.Null()])),
  ...common,
})
const check = (body: Static<typeof UpdateOrganizationAction>): FieldError[] => [
  ...checkSchemas(body),
  ...checkEndpoint(body.endpoint_url, ['https:']),
]
const Activate = Closed({
  overlap_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 86_400,
      description:
        'Seconds for which receivers still accept the previous version; 86400 by default',
    }),
  ),
})

const at = '/organization/actions'
const tag = 'actions'
const permission = 'organization.admin'
const to = { kind: 'organization' } as const
const version = `${at}/:action_id/secret/versions/:version`

export const organizationActions = {
  'organization_action.list': query(`GET ${at}`, {
    summary: 'Actions of the organization, newest first',
    tag,
    permission,
    query: Closed(paging),
    reply: pageOf(OrganizationAction),
  }),
  'organization_action.create': command(`POST ${at}`, {
    summary: 'Define an action for all projects',
    tag,
    permission,
    to,
    body: CreateOrganizationAction,
    check,
    reply: OrganizationAction,
    status: 201,
    limit: 131_072,
    errors: ['already_exists', 'conflict'],
  }),
  'organization_action.get': query(`GET ${at}/:action_id`, {
    summary: 'One action of the organization',
    tag,
    permission,
    reply: OrganizationAction,
    errors: ['not_found'],
  }),
  'organization_action.update': command(`PATCH ${at}/:action_id`, {
    summary: 'Change an action of the organization',
    tag,
    permission,
    to,
    body: UpdateOrganizationAction,
    check,
    reply: OrganizationAction,
    limit: 131_072,
    errors: ['not_found', 'already_exists'],
  }),
  'organization_action.delete': command(`DELETE ${at}/:action_id`, {
    summary: 'Delete an action of the organization',
    tag,
    permission,
    to,
    status: 204,
    errors: ['not_found'],
  }),
  'organization_action.rotate_secret': command(`POST ${at}/:action_id/secret/rotate`, {
    summary: 'Create the next signing secret; calls are signed with it after its activation',
    tag,
    permission,
    to,
    body: Closed({}),
    bodyOptional: true,
    reply: OrganizationAction,
    errors: ['not_found'],
  }),
  'organization_action.activate_secret': command(`POST ${version}/activate`, {
    summary: 'Activate the pending signing secret',
    tag,
    permission,
    to,
    body: Activate,
    bodyOptional: true,
    reply: OrganizationAction,
    errors: ['not_found', 'conflict'],
  }),
  'organization_action.revoke_secret': command(`POST ${version}/revoke`, {
    summary: 'Revoke a signing secret at once; the active secret only while the action is disabled',
    tag,
    permission,
    to,
    body: Closed({}),
    bodyOptional: true,
    reply: OrganizationAction,
    errors: ['not_found', 'conflict'],
  }),
} as const

/**
 * An action of the organization as stored, with its sealed secrets by version. The secrets of
 * retired and revoked versions are deleted.
 */
export interface OrganizationActionWithSecrets extends UrlParts {
  readonly action: OrganizationAction
  readonly secrets: Readonly<Record<string, SealedSecret>>
}
/**
 * Events of the organization about its actions. `secret` is the secret of the version that the
 * event creates.
 */
export type OrganizationActionEvent =
  | (Event &
      UrlParts & {
        readonly type: 'organization_action.created'
        readonly id: string
        readonly action: OrganizationAction
        readonly secret: SealedSecret
      })
  | (Event &
      ChangedUrlParts & {
        readonly type: 'organization_action.updated'
        readonly id: string
        readonly action: Patch<OrganizationAction>
        readonly changes: Changes
      })
  | (Event & {
      readonly type: 'organization_action.deleted'
      readonly id: string
      readonly name: string
    })
  | (Event & {
      readonly type: 'organization_action.secret_changed'
      readonly id: string
      readonly what: 'rotated' | 'activated' | 'revoked'
      readonly version: number
      readonly action: Patch<OrganizationAction>
      readonly secret?: SealedSecret
    })
  /** The period in which receivers accept two secrets has ended. The previous secret is retired. */
  | (Event & {
      readonly type: 'organization_action.secret_retired'
      readonly id: string
      readonly action: Patch<OrganizationAction>
    })
